"""Post-training: published steps, prediction of step time, and plans of trainer and rollout accelerators."""
