"""Names that editors complete; ``factorykit data build`` writes them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

QuantityName: TypeAlias = Literal[
    "parameters",
    "active_parameters",
    "tokens",
    "training_flop",
    "accelerators",
    "accelerators_per_node",
    "nodes",
    "accelerators_in_nodes",
    "peak_flop_per_s",
    "mfu",
    "cluster_peak_flop_per_s",
    "training_s",
    "training_days",
    "training_from_days_s",
    "goodput",
    "wall_s",
    "wall_days",
    "wall_from_days_s",
    "training_from_wall_s",
    "accelerator_hours",
    "wall_from_accelerator_hours_s",
    "campaign_pace",
    "campaign_pace_typical",
    "campaign_factor",
    "wall_campaign_s",
    "accelerator_power_w",
    "accelerator_load_power_w",
    "accelerator_limited_power_w",
    "node_overhead_power_w",
    "node_power_w",
    "it_power_w",
    "pue",
    "facility_power_w",
    "training_energy_kwh",
    "annual_energy_kwh",
    "accelerator_energy_kwh",
    "electricity_usd_per_kwh",
    "electricity_cost_usd",
    "annual_electricity_cost_usd",
    "carbon_kg_per_kwh",
    "training_carbon_kg",
    "water_l_per_kwh",
    "training_water_l",
    "accelerator_mtbf_s",
    "cluster_mtbf_s",
    "failures_per_day",
    "cluster_mtbf_from_failures_s",
    "expected_failures",
    "restart_s",
    "downtime_s",
    "checkpoint_bytes_per_parameter",
    "checkpoint_bytes",
    "storage_write_bytes_per_s",
    "checkpoint_write_s",
    "checkpoint_interval_s",
    "checkpoint_interval_young_s",
    "checkpoint_interval_daly_s",
    "checkpoint_interval_optimal_s",
    "checkpoint_goodput",
    "lost_work_s",
    "failure_cost_usd",
    "ettr",
    "node_failures_per_node_day",
    "rental_usd_per_accelerator_h",
    "cluster_usd_per_h",
    "rental_cost_usd",
    "run_cost_usd",
    "run_cost_owned_usd",
    "layers",
    "dense_layers",
    "hidden_size",
    "ffn_size",
    "gated_ffn",
    "attention_heads",
    "kv_heads",
    "head_size",
    "vocabulary_size",
    "tied_embeddings",
    "sequence_length",
    "experts",
    "experts_per_token",
    "shared_experts",
    "expert_ffn_size",
    "model_flop_per_token",
    "model_flop_per_token_full_attention",
    "tensor_parallel",
    "pipeline_parallel",
    "virtual_stages",
    "context_parallel",
    "expert_parallel",
    "data_parallel",
    "micro_batch_size",
    "global_batch_size",
    "micro_batches",
    "zero_stage",
    "sequence_parallel",
    "recompute",
    "precision",
    "schedule",
    "accelerator",
    "scale_up_domain",
    "scale_up_bytes_per_s",
    "scale_out_bytes_per_s",
    "memory_weights_bytes",
    "memory_activations_bytes",
    "memory_peak_bytes",
    "fits",
    "layer_runs",
    "step_gemm_s",
    "step_attention_s",
    "step_elementwise_s",
    "step_collective_s",
    "step_launch_s",
    "step_logits_s",
    "step_transfer_s",
    "step_lag_s",
    "pipeline_bubble",
    "inner_step_s",
    "step_s",
    "loader_exposed_s",
    "sample_bytes",
    "step_read_bytes",
    "readers",
    "request_bytes",
    "request_s",
    "stream_bytes_per_s",
    "sample_prepare_s",
    "reader_bytes_per_s",
    "dataset_bytes",
    "cache_bytes",
    "epochs",
    "cache_hit_share",
    "storage_left_bytes_per_s",
    "neighbour_storage_share",
    "storage_front_bytes_per_s",
    "checkpoint_shared_write_s",
    "loader_bytes_per_s",
    "loader_starved_s",
    "starvation_share",
    "busy_wanted",
    "accelerator_read_bytes_per_s",
    "accelerators_fed",
    "files_per_process",
    "metadata_per_s",
    "metadata_storm_s",
    "image_bytes",
    "image_bytes_per_s",
    "image_load_s",
    "start_fixed_s",
    "group_barriers",
    "store_requests_per_s",
    "group_setup_s",
    "job_start_s",
    "training_sites",
    "site_distance_m",
    "wan_bytes_per_s",
    "wan_latency_s",
    "inner_steps",
    "outer_bits",
    "outer_fragments",
    "outer_hidden_steps",
    "outer_bytes",
    "outer_exchange_s",
    "outer_exposed_s",
    "outer_allowed_s",
    "site_utilization",
    "site_utilization_wanted",
    "wan_needed_bytes_per_s",
    "site_reach_m",
    "wan_traffic_bytes",
    "wan_cost_usd",
    "site_mtbf_s",
    "site_repair_s",
    "sites_apart_goodput",
    "sites_together_goodput",
    "step_low_s",
    "step_high_s",
    "model_flop_per_s_per_accelerator",
    "predicted_mfu",
    "expert_biases",
    "mtp_layers",
    "q_lora_rank",
    "kv_lora_rank",
    "rope_head_size",
    "value_head_size",
    "attention_window",
    "windowed_layers_share",
    "attended_tokens",
    "norm_vectors",
    "gated_attention",
    "index_heads",
    "index_head_size",
    "linear_attention_layers",
    "attention_layers",
    "ffn_layers",
    "linear_key_heads",
    "linear_key_size",
    "linear_value_heads",
    "linear_value_size",
    "convolution_width",
    "linear_gates",
    "linear_gate_rank",
    "step_rank",
    "state_element_flop",
    "linear_attention_parameters",
    "state_flop_per_token",
    "layer_blocks",
    "index_parameters",
    "mtp_parameters",
    "moe_layers",
    "attention_parameters",
    "mixing_parameters",
    "layer_dense_parameters",
    "mixing_outputs",
    "mixing_bytes",
    "mixing_kept_bytes",
    "ffn_parameters",
    "shared_parameters",
    "routed_parameters",
    "replicated_parameters",
    "router_parameters",
    "embedding_parameters",
    "attention_flop_per_token",
    "linear_flop_per_token",
    "host_power_w",
    "nics_per_node",
    "nic_power_w",
    "fan_power_w",
    "nics_per_accelerator",
    "network_planes",
    "network_rails",
    "switch_ports",
    "network_topology",
    "network_oversubscription",
    "cube_side",
    "circuit_switch_ports",
    "network_endpoints",
    "network_tiers",
    "switches",
    "switch_links",
    "circuit_switches",
    "network_transceivers",
    "network_diameter",
    "bisection_bytes_per_s",
    "circuit_switch_power_w",
    "switch_power_w",
    "transceiver_power_w",
    "optics",
    "transceiver_power_by_optics_w",
    "network_power_w",
    "node_overhead_power_built_w",
    "nodes_per_rack",
    "rack_power_w",
    "racks",
    "cooling_capacity_w",
    "cooling_fits",
    "nodes_per_rack_cooled",
    "facility_power_per_accelerator_w",
    "embodied_carbon_kg_per_accelerator",
    "hardware_life_years",
    "utilization",
    "training_embodied_carbon_kg",
    "carbon_free_share",
    "training_carbon_matched_kg",
    "training_carbon_total_kg",
    "grid_water_l_per_kwh",
    "training_water_grid_l",
    "training_water_total_l",
    "reserved_discount",
    "reserved_usd_per_accelerator_h",
    "spot_discount",
    "spot_reclaim_mtbf_s",
    "spot_usd_per_accelerator_h",
    "spot_mtbf_s",
    "spot_checkpoint_interval_s",
    "spot_goodput",
    "spot_cost_usd",
    "spot_saving",
    "spot_interruption_share",
    "spot_reclaim_groups",
    "spot_reclaim_mtbf_grouped_s",
    "spot_near_share",
    "spot_segments_per_pattern",
    "spot_tiered_interval_s",
    "spot_tiered_goodput",
    "spot_tiered_cost_usd",
    "spot_tiered_saving",
    "transfer_bytes",
    "egress_usd_per_byte",
    "egress_cost_usd",
    "offer_fits",
    "offer_cost_usd",
    "offered_accelerators",
    "rental_elsewhere_usd_per_accelerator_h",
    "move_pays_after_h",
    "wasted_cost_usd",
    "failures_cost_usd",
    "budget_usd",
    "budget_share",
    "rental_usd_per_token",
    "rental_usd_per_flop",
    "server_usd",
    "server_capital_usd",
    "switch_usd",
    "link_usd",
    "circuit_switch_usd",
    "network_capital_usd",
    "network_capital_share",
    "storage_bytes",
    "storage_usd_per_byte",
    "storage_capital_usd",
    "it_capital_usd",
    "facility_usd_per_w",
    "facility_capital_usd",
    "capital_usd",
    "discount_rate",
    "residual_share",
    "facility_life_years",
    "capital_recovery_per_year",
    "facility_capital_recovery_per_year",
    "it_capital_usd_per_year",
    "it_capital_straight_usd_per_year",
    "facility_capital_usd_per_year",
    "maintenance_share",
    "maintenance_usd_per_year",
    "staff",
    "staff_usd_per_person_year",
    "staff_usd_per_year",
    "operating_usd_per_year",
    "ownership_usd_per_year",
    "ownership_usd_per_accelerator_h",
    "ownership_cost_usd",
    "rental_usd_per_year",
    "break_even_utilization",
    "horizon_years",
    "rental_decline_per_year",
    "rental_present_usd",
    "ownership_present_usd",
    "build_saving_usd",
    "accelerator_usd",
    "accelerator_usd_per_flop_per_s",
    "nominal_usd",
    "price_level",
    "price_level_wanted",
    "real_usd",
    "cost_halving_years",
    "years_later",
    "later_cost_usd",
    "idle_usd_per_year",
    "utilization_before",
    "utilization_gain_usd_per_year",
    "deadline_s",
    "required_accelerators",
    "compute_optimal_tokens",
    "compute_optimal_step_tokens",
    "bytes_per_token",
    "data_read_bytes_per_s",
    "storage_read_bytes_per_s",
    "data_read_share",
    "checkpoint_stall_limit_s",
    "storage_write_needed_bytes_per_s",
    "tokens_per_step",
    "gradient_bytes_per_parameter",
    "model_shards",
    "gradient_exchange_bytes",
    "scale_out_needed_bytes_per_s",
    "overhead_multiplier",
    "training_flop_padded",
    "corpus_bytes",
    "failures",
    "observed_s",
    "cluster_mtbf_counted_s",
    "accelerator_mtbf_counted_s",
    "node_failures_per_node_day_counted",
    "node_failures_per_node_day_shrunk",
    "node_days",
    "prior_failures",
    "prior_node_days",
    "node_failures_per_node_day_of_job",
    "node_failures_per_node_day_from_mtbf",
    "cluster_mtbf_node_rate_s",
    "cluster_mtbf_small_job_s",
    "cluster_mtbf_superlinear_s",
    "link_mtbf_s",
    "switch_mtbf_s",
    "cluster_mtbf_network_s",
    "accelerator_failures_per_year",
    "span_s",
    "survival_probability",
    "node_mtbf_s",
    "node_repair_s",
    "availability",
    "unavailability",
    "nodes_in_repair",
    "node_repair_median_s",
    "node_repair_sigma",
    "nodes_per_pod",
    "pod_spread_penalty",
    "node_repair_lognormal_s",
    "lifetime_shape",
    "lifetime_scale_s",
    "lifetime_mean_s",
    "first_failure_s",
    "bring_up_survival",
    "bring_up_failures",
    "bring_up_mtbf_s",
    "checkpoint_interval_saxena_s",
    "checkpoint_interval_rfo_s",
    "checkpoint_interval_ettr_s",
    "interval_penalty",
    "checkpoint_segments",
    "checkpoint_wall_s",
    "checkpoint_wall_sd_s",
    "checkpoint_failures",
    "lost_work_run_s",
    "checkpoint_goodput_protected",
    "checkpoint_block_s",
    "checkpoint_lag_s",
    "checkpoint_goodput_async",
    "checkpoint_interval_async_s",
    "level_share",
    "level_write_s",
    "level_interval_s",
    "level_overhead",
    "level_one_share",
    "level_one_write_s",
    "level_two_write_s",
    "level_one_restart_s",
    "level_two_restart_s",
    "level_two_restart_same_s",
    "segments_per_pattern",
    "segments_per_pattern_first_order",
    "two_level_interval_s",
    "two_level_pattern_s",
    "two_level_pattern_exposed_s",
    "two_level_goodput",
    "checkpoint_bytes_per_accelerator",
    "node_storage_bytes_per_s",
    "filesystem_bytes_per_s",
    "storage_slowest_bytes_per_s",
    "checkpoint_read_s",
    "checkpoint_bytes_per_day",
    "checkpoints_kept",
    "checkpoint_kept_bytes",
    "checkpoint_retention_s",
    "checkpoints_kept_by_age",
    "checkpoint_target_s",
    "storage_needed_bytes_per_s",
    "replicas",
    "reconfigure_s",
    "correlated_share",
    "cold_restart_s",
    "replica_stall_s",
    "elastic_goodput",
    "redundant_mtbf_s",
    "redundant_goodput",
    "sdc_mtbf_s",
    "sdc_detection_s",
    "sdc_test_interval_s",
    "sdc_test_s",
    "sdc_test_catch_share",
    "sdc_test_lag_s",
    "sdc_test_goodput",
    "sdc_test_interval_best_s",
    "replay_share",
    "sdc_replay_lag_s",
    "sdc_replay_goodput",
    "abft_share",
    "abft_catch_share",
    "abft_goodput",
    "straggler_mtbf_s",
    "straggler_slowdown",
    "straggler_detection_s",
    "swap_s",
    "straggler_loss_share",
    "lemon_failure_share",
    "lemon_catch_share",
    "fenced_mtbf_s",
    "bad_node_share",
    "admission_catch_share",
    "bad_nodes_left",
    "bad_node_factor",
    "admitted_mtbf_s",
    "admission_test_s",
    "admission_cost_usd",
    "burn_in_s",
    "burn_in_failures_saved",
    "burn_in_cost_usd",
    "building_s",
    "delivery_lead_s",
    "power_lead_s",
    "accelerators_per_day",
    "installation_s",
    "ready_s",
    "bring_up_idle_usd",
    "exchange_share",
    "neighbour_link_share",
    "neighbour_slowdown",
    "contended_share",
    "tenancy_goodput",
    "temperature_c",
    "temperature_reference_c",
    "activation_energy_ev",
    "temperature_failure_factor",
    "alarms_per_day",
    "alarm_check_s",
    "alarm_loss_share",
    "diurnal_swing_share",
    "diurnal_loss_share",
    "sdc_goodput",
    "sdc_rework_s",
    "sdc_checkpoints_needed",
    "failures_usd_per_day",
    "interval_usd_per_day",
    "restart_faster_s",
    "restart_saving_usd_per_day",
    "mtbf_factor",
    "mtbf_saving_usd_per_day",
    "spare_nodes",
    "spare_nodes_enough",
    "spares_usd_per_day",
    "collective_bytes",
    "collective_ranks",
    "domain_ranks",
    "link_bytes_per_s",
    "link_latency_s",
    "ring_all_reduce_s",
    "all_to_all_s",
    "collective",
    "collective_algorithm",
    "collective_start_s",
    "collective_up_s",
    "collective_out_s",
    "collective_up_share",
    "collective_out_share",
    "collective_sum_share",
    "domain_reduction_share",
    "torus_axes",
    "torus_side",
    "bus_factor",
    "ring_collective_s",
    "tree_collective_s",
    "in_network_collective_s",
    "pat_collective_s",
    "torus_collective_s",
    "exchange_collective_s",
    "collective_s",
    "bus_bytes_per_s",
    "two_tier_ring_s",
    "scale_up_share",
    "scale_out_share",
    "routing_share",
    "link_flows",
    "routing_share_ecmp",
    "incast_share",
    "incast_share_paused",
    "port_bytes_per_s",
    "cable_m",
    "frame_bytes",
    "switch_buffer_bytes",
    "lossless_classes",
    "buffer_sharing",
    "pause_headroom_bytes",
    "pause_threshold_bytes",
    "mark_threshold_bytes",
    "pod_accelerators",
    "in_network_reduction",
    "tensor_up_share",
    "context_up_share",
    "ring_up_share",
    "exchange_up_share",
    "sustained_out_share",
    "ring_out_share",
    "exchange_out_share",
    "scale_up_latency_s",
    "scale_out_latency_s",
    "expert_tensor_parallel",
    "expert_data_parallel",
    "optimizer_shards",
    "stage_layers",
    "stage_forward_s",
    "stage_backward_s",
    "stage_weight_gradient_s",
    "stage_overlapped_s",
    "pipeline_idle_s",
    "pipeline_makespan_s",
    "micro_batch_tokens",
    "optimizer_bytes_per_parameter",
    "update_bytes_per_parameter",
    "gather_buffer_bytes",
    "graph_pool_share",
    "lora_rank",
    "adapter_bytes",
    "lora_matrices",
    "adapter_dropout",
    "adapter_parameters",
    "trained_share",
    "weight_bits",
    "weight_bytes_per_parameter",
    "stage_embedding_parameters",
    "offloaded_optimizer_share",
    "offloaded_gradients_share",
    "offloaded_weights_share",
    "host_link_bytes_per_s",
    "host_updates_per_s",
    "host_peak_bytes",
    "stage_ffn_layers",
    "stage_moe_layers",
    "stage_sharded_parameters",
    "stage_replicated_parameters",
    "stage_expert_parameters",
    "dropout",
    "flash_attention",
    "recompute_share",
    "kept_share",
    "activation_offload_share",
    "kept_rows_share",
    "layer_activation_bytes",
    "layer_score_bytes",
    "layer_kept_bytes",
    "first_stage_activation_bytes",
    "last_stage_activation_bytes",
    "micro_batches_in_flight",
    "logits_bytes",
    "memory_workspace_bytes",
    "eager_activation_factor",
    "activation_factor",
    "state_factor",
    "memory_band",
    "context_bytes",
    "network_buffer_bytes",
    "fragmentation_share",
    "memory_needed_bytes",
    "memory_reserve_bytes",
    "accelerator_memory_bytes",
    "software_year",
    "peak_16bit_flop_per_s",
    "gemm_ceiling",
    "gemm_ceiling_16bit",
    "memory_bytes_per_s",
    "chip_year",
    "design_j_per_flop",
    "matrix_tile",
    "exponentials_per_s",
    "power_limit_share",
    "vendor_kernels",
    "fused_kernels",
    "cuda_graphs",
    "logits_layers",
    "chunked_loss",
    "whole_logits",
    "held_boundaries",
    "accumulated_gradient_bytes",
    "tensor_overlap",
    "gradient_overlap",
    "tensorwise_shards",
    "grouped_experts",
    "dispatched_once",
    "expert_overlap",
    "interleaved_overlap",
    "reduced_bytes_per_parameter",
    "expert_imbalance",
    "native_attention",
    "message_s",
    "dispatch_masks",
    "newton_schulz_steps",
    "grouped_tile_tokens",
    "gemm_share_16bit",
    "gemm_share_8bit",
    "gemm_share_block",
    "gemm_traffic_factor",
    "gemm_wave_outputs",
    "elementwise_factor",
    "eager_traffic_factor",
    "memory_rate_share",
    "attention_share",
    "state_share",
    "state_chunk_tokens",
    "attention_ramp_tokens",
    "misaligned_factor",
    "score_bytes",
    "maturity_years",
    "young_gemm_share",
    "young_attention_share",
    "maker_gain",
    "power_exponent",
    "full_power_j_per_flop",
    "narrow_power_share",
    "software_gain_per_year",
    "layer_launch_s",
    "eager_launch_factor",
    "collective_skew_s",
    "routing_launch_s",
    "routing_wait_s",
    "expert_launch_s",
    "collective_launch_s",
    "layer_fixed_s",
    "layer_update_s",
    "shard_part_s",
    "step_fixed_s",
    "straggler_share",
    "tensor_exposed_plain",
    "tensor_exposed_overlapped",
    "expert_exposed_share",
    "expert_exposed_across",
    "expert_exposed_overlapped",
    "context_exposed_share",
    "gradient_overlap_share",
    "gather_overlap_share",
    "gather_contention_share",
    "maturity",
    "gemm_flop_per_s",
    "gemm_16bit_flop_per_s",
    "narrow_rate_share",
    "held_rate_share",
    "sustained_memory_bytes_per_s",
    "layer_gemm_s",
    "layer_attention_s",
    "layer_state_s",
    "layer_elementwise_s",
    "gemm_passes",
    "elementwise_passes",
    "attention_passes",
    "layer_compute_s",
    "tensor_parallel_s",
    "context_parallel_s",
    "expert_parallel_s",
    "launch_s",
    "gather_s",
    "layer_s",
    "logits_s",
    "logits_exposed_s",
    "stage_transfer_s",
    "stage_s",
    "pipeline_wait_s",
    "gradient_s",
    "gradient_exposed_s",
    "optimizer_s",
    "evidence_families",
    "evidence_software",
    "assumed_inputs",
    "spread_model",
    "spread_new_chip",
    "spread_new_software",
    "spread_assumed",
    "spread_experts",
    "spread_states",
    "spread_overhead",
    "spread_across",
    "spread_scale",
    "scale_seen",
    "spread_alone",
    "unexplained_variance",
    "step_pace",
    "step_spread",
    "step_tokens",
    "training_steps",
    "training_stepped_s",
    "input_tokens",
    "output_tokens",
    "concurrent_requests",
    "requests_per_s",
    "attention_data_parallel",
    "kv_bytes_per_element",
    "served_bytes_per_parameter",
    "serving_memory_share",
    "draft_tokens",
    "draft_acceptance",
    "cached_input_share",
    "prefill_separate",
    "decode_memory_share",
    "prefill_flop_share",
    "serving_layer_s",
    "serving_step_s",
    "serving_message_s",
    "serving_load_share",
    "queued_prefills",
    "serving_request_s",
    "prefill_workers",
    "prefill_accelerators",
    "prompt_cost_share",
    "input_tokens_cv",
    "output_tokens_cv",
    "latency_percentile",
    "time_to_first_token_tail_s",
    "time_per_output_token_tail_s",
    "request_latency_tail_s",
    "serving_usd_per_cached_token",
    "api_usd_per_input_token",
    "api_usd_per_output_token",
    "break_even_requests_per_s",
    "user_think_s",
    "users_per_accelerator",
    "serving_users",
    "kv_elements_per_token",
    "kv_bytes_per_token",
    "state_bytes_per_request",
    "context_tokens",
    "cached_tokens",
    "request_kv_bytes",
    "kv_shards",
    "replica_accelerators",
    "served_weight_bytes",
    "requests_in_memory",
    "decode_requests",
    "draft_step_tokens",
    "accepted_tokens",
    "touched_expert_share",
    "decode_weight_bytes",
    "product_parameters",
    "decode_kv_bytes",
    "decode_products_s",
    "decode_attention_s",
    "exchange_message_s",
    "exchange_token_s",
    "decode_step_s",
    "prefill_flop",
    "prefill_work_s",
    "prefill_s",
    "kv_transfer_s",
    "prefill_backlog_s",
    "time_per_output_token_s",
    "batch_time_share",
    "prefill_utilization",
    "time_to_first_token_s",
    "request_latency_s",
    "output_tokens_per_s",
    "output_tokens_per_s_per_accelerator",
    "output_tokens_per_s_per_user",
    "serving_replicas",
    "serving_j_per_token",
    "serving_usd_per_token",
    "serving_usd_per_input_token",
    "serving_usd_per_output_token",
    "rollout_samples",
    "rollout_accelerators",
    "output_limit_tokens",
    "output_spread",
    "policy_lag_steps",
    "tool_wait_s",
    "reward_s",
    "forward_passes",
    "trained_models",
    "optimizer_updates",
    "rollout_slowdown",
    "update_slowdown",
    "weight_sync_base_s",
    "post_training_overhead_s",
    "replica_samples",
    "longest_output_tokens",
    "rollout_decode_steps",
    "running_requests",
    "rollout_s",
    "policy_update_s",
    "log_probability_s",
    "weight_sync_s",
    "post_training_step_s",
    "rollout_utilization",
    "trainer_utilization",
]
TableName: TypeAlias = Literal[
    "sources",
    "organisation_statements",
    "organisations",
    "freshness",
    "data_changes",
    "statements",
    "aliases",
    "accelerators",
    "accelerator_statements",
    "cluster_statements",
    "cluster_chips",
    "clusters",
    "chip_counts",
    "site_statements",
    "sites",
    "nodes",
    "networks",
    "fabrics",
    "storage_systems",
    "loader_workloads",
    "power",
    "cooling",
    "pue",
    "run_statements",
    "runs",
    "model_statements",
    "models",
    "training_runs",
    "failed_layouts",
    "multi_site_runs",
    "presets",
    "defaults",
    "ranges",
    "architectures",
    "config_defaults",
    "parallelism",
    "recipes",
    "stages",
    "rl_steps",
    "ceilings",
    "generations",
    "links",
    "collective_measurements",
    "frameworks",
    "framework_features",
    "performance_constants",
    "held_out",
    "few_shots",
    "serving_points",
    "serving_recipes",
    "serving_devices",
    "serving_benchmarks",
    "inference_results",
    "serving_constants",
    "failures",
    "reliability",
    "root_causes",
    "lifetime_fits",
    "lifetime_curves",
    "recovery",
    "checkpoint_tiers",
    "costs",
    "prices",
    "price_months",
    "cloud_providers",
    "levers",
    "rules",
    "forecasts",
    "grids",
    "cloud_regions",
    "rental_offers",
    "egress_prices",
    "chip_prices",
    "price_levels",
    "halving_times",
    "country_grids",
    "exchange_rates",
    "electricity",
    "electricity_months",
    "months",
    "workloads",
    "utilizations",
    "practice_figures",
    "schedulers",
    "software_stack",
    "functions",
    "launch_options",
    "facts",
    "claims",
    "conflicts",
    "expected_values",
    "coverage",
]
AcceleratorName: TypeAlias = Literal[
    "v100_sxm",
    "v100_sxm_16gb",
    "v100_pcie_16gb",
    "v100_pcie_32gb",
    "a100_sxm_40gb",
    "a100_sxm_80gb",
    "a100_pcie",
    "a100_pcie_40gb",
    "a800_sxm",
    "h100_pcie",
    "h100_sxm",
    "h100_nvl",
    "h800_sxm",
    "h20",
    "h200_sxm",
    "h200_nvl",
    "gh200",
    "b100",
    "b200",
    "gb200",
    "b300",
    "gb300",
    "rubin",
    "l40s",
    "l20",
    "l40",
    "l4",
    "t4",
    "a10",
    "a10g",
    "a30",
    "a40",
    "rtx_3090",
    "rtx_a6000",
    "rtx_4090",
    "rtx_6000_ada",
    "rtx_5090",
    "rtx_pro_6000",
    "rtx_pro_6000_server",
    "gb10",
    "mi250x",
    "mi300a",
    "mi300x",
    "mi325x",
    "mi350x",
    "mi355x",
    "mi455x",
    "tpu_v3",
    "tpu_v4",
    "tpu_v5e",
    "tpu_v5p",
    "tpu_v6e",
    "tpu_v7",
    "trainium1",
    "trainium2",
    "trainium3",
    "gaudi2",
    "gaudi3",
    "max_1550",
    "maia_100",
    "maia_200",
    "mtia_300",
    "ascend_910a",
    "ascend_910b",
    "ascend_910b1",
    "ascend_910b2",
    "ascend_910c",
    "ascend_950dt",
    "groq_lpu",
    "cerebras_wse3",
]
ArchitectureName: TypeAlias = Literal[
    "gpt3_175b",
    "llama2_7b",
    "llama2_70b",
    "llama3_8b",
    "llama3_70b",
    "llama3_405b",
    "mixtral_8x7b",
    "mixtral_8x22b",
    "deepseek_v2",
    "deepseek_v3",
    "qwen3_8b",
    "qwen3_32b",
    "qwen3_235b",
    "qwen3_30b",
    "gpt_oss_120b",
    "gpt_neox_20b",
    "opt_66b",
    "bloom_176b",
    "falcon_40b",
    "llama3_2_1b",
    "llama3_2_3b",
    "llama4_scout",
    "llama4_maverick",
    "mistral_7b",
    "qwen2_5_7b",
    "qwen2_5_72b",
    "qwen3_0_6b",
    "qwen3_1_7b",
    "qwen3_4b",
    "qwen3_14b",
    "qwen3_coder_480b",
    "qwen3_next_80b",
    "qwen3_5_27b",
    "qwen3_5_397b",
    "deepseek_v2_lite",
    "deepseek_v3_2",
    "kimi_k2",
    "glm_4_5",
    "glm_4_5_air",
    "glm_5",
    "minimax_m2",
    "minimax_text_01",
    "gpt_oss_20b",
    "gemma2_9b",
    "gemma2_27b",
    "gemma3_4b",
    "gemma3_12b",
    "gemma3_27b",
    "olmo2_7b",
    "olmo2_13b",
    "olmo2_32b",
    "olmoe_1b_7b",
    "phi4",
    "command_r",
    "command_r_plus",
    "dbrx",
    "jamba_1_5_mini",
    "jamba_1_5_large",
    "nemotron4_340b",
    "grok_1",
    "smollm3_3b",
    "seed_oss_36b",
    "apertus_70b",
    "mt_nlg_530b",
    "palm_540b",
    "nemotron_h_8b",
    "nemotron_h_56b",
    "nemotron_3_nano_30b",
    "granite_4_h_small",
    "falcon_h1_34b",
    "kimi_linear_48b",
    "mamba2_2_7b",
    "falcon_mamba_7b",
    "lfm2_8b",
    "llama2_13b",
    "llama_33b",
    "llama_65b",
    "qwen2_5_0_5b",
    "qwen2_5_1_5b",
    "qwen2_5_3b",
    "qwen2_5_14b",
    "qwen2_5_32b",
    "mistral_nemo_12b",
    "yi_34b",
    "phi3_mini",
    "qwen3_5_122b",
    "qwen3_5_35b",
    "nemotron_3_super_120b",
    "nemotron_3_ultra_550b",
    "kimi_k3",
    "deepseek_v4_flash",
    "deepseek_v4_pro",
]
PresetName: TypeAlias = Literal[
    "llama_3_1_405b",
    "deepseek_v3",
    "gpt_3_175b",
    "bloom_176b",
    "palm_540b",
    "opt_175b",
    "llama_3_1_405b_seed_000",
    "deepseek_v3_seed_000",
    "grok_3",
    "gemini_ultra",
    "llama_3_405b_seed_001",
    "meta_24k",
    "xai_colossus_100k",
    "xai_colossus_200k",
    "deepseek_2048",
    "tpu_v5p_pod",
    "aws_project_rainier",
    "meta_rsc_1",
    "dgx_h100",
    "gb200_nvl72",
    "seed_004_7b",
    "seed_004_70b",
    "seed_004_400b",
    "seed_004_1t",
]

class Quantities(TypedDict, total=False):
    """Quantities as keyword arguments."""

    parameters: Any
    active_parameters: Any
    tokens: Any
    training_flop: Any
    accelerators: Any
    accelerators_per_node: Any
    nodes: Any
    accelerators_in_nodes: Any
    peak_flop_per_s: Any
    mfu: Any
    cluster_peak_flop_per_s: Any
    training_s: Any
    training_days: Any
    training_from_days_s: Any
    goodput: Any
    wall_s: Any
    wall_days: Any
    wall_from_days_s: Any
    training_from_wall_s: Any
    accelerator_hours: Any
    wall_from_accelerator_hours_s: Any
    campaign_pace: Any
    campaign_pace_typical: Any
    campaign_factor: Any
    wall_campaign_s: Any
    accelerator_power_w: Any
    accelerator_load_power_w: Any
    accelerator_limited_power_w: Any
    node_overhead_power_w: Any
    node_power_w: Any
    it_power_w: Any
    pue: Any
    facility_power_w: Any
    training_energy_kwh: Any
    annual_energy_kwh: Any
    accelerator_energy_kwh: Any
    electricity_usd_per_kwh: Any
    electricity_cost_usd: Any
    annual_electricity_cost_usd: Any
    carbon_kg_per_kwh: Any
    training_carbon_kg: Any
    water_l_per_kwh: Any
    training_water_l: Any
    accelerator_mtbf_s: Any
    cluster_mtbf_s: Any
    failures_per_day: Any
    cluster_mtbf_from_failures_s: Any
    expected_failures: Any
    restart_s: Any
    downtime_s: Any
    checkpoint_bytes_per_parameter: Any
    checkpoint_bytes: Any
    storage_write_bytes_per_s: Any
    checkpoint_write_s: Any
    checkpoint_interval_s: Any
    checkpoint_interval_young_s: Any
    checkpoint_interval_daly_s: Any
    checkpoint_interval_optimal_s: Any
    checkpoint_goodput: Any
    lost_work_s: Any
    failure_cost_usd: Any
    ettr: Any
    node_failures_per_node_day: Any
    rental_usd_per_accelerator_h: Any
    cluster_usd_per_h: Any
    rental_cost_usd: Any
    run_cost_usd: Any
    run_cost_owned_usd: Any
    layers: Any
    dense_layers: Any
    hidden_size: Any
    ffn_size: Any
    gated_ffn: Any
    attention_heads: Any
    kv_heads: Any
    head_size: Any
    vocabulary_size: Any
    tied_embeddings: Any
    sequence_length: Any
    experts: Any
    experts_per_token: Any
    shared_experts: Any
    expert_ffn_size: Any
    model_flop_per_token: Any
    model_flop_per_token_full_attention: Any
    tensor_parallel: Any
    pipeline_parallel: Any
    virtual_stages: Any
    context_parallel: Any
    expert_parallel: Any
    data_parallel: Any
    micro_batch_size: Any
    global_batch_size: Any
    micro_batches: Any
    zero_stage: Any
    sequence_parallel: Any
    recompute: Any
    precision: Any
    schedule: Any
    accelerator: Any
    scale_up_domain: Any
    scale_up_bytes_per_s: Any
    scale_out_bytes_per_s: Any
    memory_weights_bytes: Any
    memory_activations_bytes: Any
    memory_peak_bytes: Any
    fits: Any
    layer_runs: Any
    step_gemm_s: Any
    step_attention_s: Any
    step_elementwise_s: Any
    step_collective_s: Any
    step_launch_s: Any
    step_logits_s: Any
    step_transfer_s: Any
    step_lag_s: Any
    pipeline_bubble: Any
    inner_step_s: Any
    step_s: Any
    loader_exposed_s: Any
    sample_bytes: Any
    step_read_bytes: Any
    readers: Any
    request_bytes: Any
    request_s: Any
    stream_bytes_per_s: Any
    sample_prepare_s: Any
    reader_bytes_per_s: Any
    dataset_bytes: Any
    cache_bytes: Any
    epochs: Any
    cache_hit_share: Any
    storage_left_bytes_per_s: Any
    neighbour_storage_share: Any
    storage_front_bytes_per_s: Any
    checkpoint_shared_write_s: Any
    loader_bytes_per_s: Any
    loader_starved_s: Any
    starvation_share: Any
    busy_wanted: Any
    accelerator_read_bytes_per_s: Any
    accelerators_fed: Any
    files_per_process: Any
    metadata_per_s: Any
    metadata_storm_s: Any
    image_bytes: Any
    image_bytes_per_s: Any
    image_load_s: Any
    start_fixed_s: Any
    group_barriers: Any
    store_requests_per_s: Any
    group_setup_s: Any
    job_start_s: Any
    training_sites: Any
    site_distance_m: Any
    wan_bytes_per_s: Any
    wan_latency_s: Any
    inner_steps: Any
    outer_bits: Any
    outer_fragments: Any
    outer_hidden_steps: Any
    outer_bytes: Any
    outer_exchange_s: Any
    outer_exposed_s: Any
    outer_allowed_s: Any
    site_utilization: Any
    site_utilization_wanted: Any
    wan_needed_bytes_per_s: Any
    site_reach_m: Any
    wan_traffic_bytes: Any
    wan_cost_usd: Any
    site_mtbf_s: Any
    site_repair_s: Any
    sites_apart_goodput: Any
    sites_together_goodput: Any
    step_low_s: Any
    step_high_s: Any
    model_flop_per_s_per_accelerator: Any
    predicted_mfu: Any
    expert_biases: Any
    mtp_layers: Any
    q_lora_rank: Any
    kv_lora_rank: Any
    rope_head_size: Any
    value_head_size: Any
    attention_window: Any
    windowed_layers_share: Any
    attended_tokens: Any
    norm_vectors: Any
    gated_attention: Any
    index_heads: Any
    index_head_size: Any
    linear_attention_layers: Any
    attention_layers: Any
    ffn_layers: Any
    linear_key_heads: Any
    linear_key_size: Any
    linear_value_heads: Any
    linear_value_size: Any
    convolution_width: Any
    linear_gates: Any
    linear_gate_rank: Any
    step_rank: Any
    state_element_flop: Any
    linear_attention_parameters: Any
    state_flop_per_token: Any
    layer_blocks: Any
    index_parameters: Any
    mtp_parameters: Any
    moe_layers: Any
    attention_parameters: Any
    mixing_parameters: Any
    layer_dense_parameters: Any
    mixing_outputs: Any
    mixing_bytes: Any
    mixing_kept_bytes: Any
    ffn_parameters: Any
    shared_parameters: Any
    routed_parameters: Any
    replicated_parameters: Any
    router_parameters: Any
    embedding_parameters: Any
    attention_flop_per_token: Any
    linear_flop_per_token: Any
    host_power_w: Any
    nics_per_node: Any
    nic_power_w: Any
    fan_power_w: Any
    nics_per_accelerator: Any
    network_planes: Any
    network_rails: Any
    switch_ports: Any
    network_topology: Any
    network_oversubscription: Any
    cube_side: Any
    circuit_switch_ports: Any
    network_endpoints: Any
    network_tiers: Any
    switches: Any
    switch_links: Any
    circuit_switches: Any
    network_transceivers: Any
    network_diameter: Any
    bisection_bytes_per_s: Any
    circuit_switch_power_w: Any
    switch_power_w: Any
    transceiver_power_w: Any
    optics: Any
    transceiver_power_by_optics_w: Any
    network_power_w: Any
    node_overhead_power_built_w: Any
    nodes_per_rack: Any
    rack_power_w: Any
    racks: Any
    cooling_capacity_w: Any
    cooling_fits: Any
    nodes_per_rack_cooled: Any
    facility_power_per_accelerator_w: Any
    embodied_carbon_kg_per_accelerator: Any
    hardware_life_years: Any
    utilization: Any
    training_embodied_carbon_kg: Any
    carbon_free_share: Any
    training_carbon_matched_kg: Any
    training_carbon_total_kg: Any
    grid_water_l_per_kwh: Any
    training_water_grid_l: Any
    training_water_total_l: Any
    reserved_discount: Any
    reserved_usd_per_accelerator_h: Any
    spot_discount: Any
    spot_reclaim_mtbf_s: Any
    spot_usd_per_accelerator_h: Any
    spot_mtbf_s: Any
    spot_checkpoint_interval_s: Any
    spot_goodput: Any
    spot_cost_usd: Any
    spot_saving: Any
    spot_interruption_share: Any
    spot_reclaim_groups: Any
    spot_reclaim_mtbf_grouped_s: Any
    spot_near_share: Any
    spot_segments_per_pattern: Any
    spot_tiered_interval_s: Any
    spot_tiered_goodput: Any
    spot_tiered_cost_usd: Any
    spot_tiered_saving: Any
    transfer_bytes: Any
    egress_usd_per_byte: Any
    egress_cost_usd: Any
    offer_fits: Any
    offer_cost_usd: Any
    offered_accelerators: Any
    rental_elsewhere_usd_per_accelerator_h: Any
    move_pays_after_h: Any
    wasted_cost_usd: Any
    failures_cost_usd: Any
    budget_usd: Any
    budget_share: Any
    rental_usd_per_token: Any
    rental_usd_per_flop: Any
    server_usd: Any
    server_capital_usd: Any
    switch_usd: Any
    link_usd: Any
    circuit_switch_usd: Any
    network_capital_usd: Any
    network_capital_share: Any
    storage_bytes: Any
    storage_usd_per_byte: Any
    storage_capital_usd: Any
    it_capital_usd: Any
    facility_usd_per_w: Any
    facility_capital_usd: Any
    capital_usd: Any
    discount_rate: Any
    residual_share: Any
    facility_life_years: Any
    capital_recovery_per_year: Any
    facility_capital_recovery_per_year: Any
    it_capital_usd_per_year: Any
    it_capital_straight_usd_per_year: Any
    facility_capital_usd_per_year: Any
    maintenance_share: Any
    maintenance_usd_per_year: Any
    staff: Any
    staff_usd_per_person_year: Any
    staff_usd_per_year: Any
    operating_usd_per_year: Any
    ownership_usd_per_year: Any
    ownership_usd_per_accelerator_h: Any
    ownership_cost_usd: Any
    rental_usd_per_year: Any
    break_even_utilization: Any
    horizon_years: Any
    rental_decline_per_year: Any
    rental_present_usd: Any
    ownership_present_usd: Any
    build_saving_usd: Any
    accelerator_usd: Any
    accelerator_usd_per_flop_per_s: Any
    nominal_usd: Any
    price_level: Any
    price_level_wanted: Any
    real_usd: Any
    cost_halving_years: Any
    years_later: Any
    later_cost_usd: Any
    idle_usd_per_year: Any
    utilization_before: Any
    utilization_gain_usd_per_year: Any
    deadline_s: Any
    required_accelerators: Any
    compute_optimal_tokens: Any
    compute_optimal_step_tokens: Any
    bytes_per_token: Any
    data_read_bytes_per_s: Any
    storage_read_bytes_per_s: Any
    data_read_share: Any
    checkpoint_stall_limit_s: Any
    storage_write_needed_bytes_per_s: Any
    tokens_per_step: Any
    gradient_bytes_per_parameter: Any
    model_shards: Any
    gradient_exchange_bytes: Any
    scale_out_needed_bytes_per_s: Any
    overhead_multiplier: Any
    training_flop_padded: Any
    corpus_bytes: Any
    failures: Any
    observed_s: Any
    cluster_mtbf_counted_s: Any
    accelerator_mtbf_counted_s: Any
    node_failures_per_node_day_counted: Any
    node_failures_per_node_day_shrunk: Any
    node_days: Any
    prior_failures: Any
    prior_node_days: Any
    node_failures_per_node_day_of_job: Any
    node_failures_per_node_day_from_mtbf: Any
    cluster_mtbf_node_rate_s: Any
    cluster_mtbf_small_job_s: Any
    cluster_mtbf_superlinear_s: Any
    link_mtbf_s: Any
    switch_mtbf_s: Any
    cluster_mtbf_network_s: Any
    accelerator_failures_per_year: Any
    span_s: Any
    survival_probability: Any
    node_mtbf_s: Any
    node_repair_s: Any
    availability: Any
    unavailability: Any
    nodes_in_repair: Any
    node_repair_median_s: Any
    node_repair_sigma: Any
    nodes_per_pod: Any
    pod_spread_penalty: Any
    node_repair_lognormal_s: Any
    lifetime_shape: Any
    lifetime_scale_s: Any
    lifetime_mean_s: Any
    first_failure_s: Any
    bring_up_survival: Any
    bring_up_failures: Any
    bring_up_mtbf_s: Any
    checkpoint_interval_saxena_s: Any
    checkpoint_interval_rfo_s: Any
    checkpoint_interval_ettr_s: Any
    interval_penalty: Any
    checkpoint_segments: Any
    checkpoint_wall_s: Any
    checkpoint_wall_sd_s: Any
    checkpoint_failures: Any
    lost_work_run_s: Any
    checkpoint_goodput_protected: Any
    checkpoint_block_s: Any
    checkpoint_lag_s: Any
    checkpoint_goodput_async: Any
    checkpoint_interval_async_s: Any
    level_share: Any
    level_write_s: Any
    level_interval_s: Any
    level_overhead: Any
    level_one_share: Any
    level_one_write_s: Any
    level_two_write_s: Any
    level_one_restart_s: Any
    level_two_restart_s: Any
    level_two_restart_same_s: Any
    segments_per_pattern: Any
    segments_per_pattern_first_order: Any
    two_level_interval_s: Any
    two_level_pattern_s: Any
    two_level_pattern_exposed_s: Any
    two_level_goodput: Any
    checkpoint_bytes_per_accelerator: Any
    node_storage_bytes_per_s: Any
    filesystem_bytes_per_s: Any
    storage_slowest_bytes_per_s: Any
    checkpoint_read_s: Any
    checkpoint_bytes_per_day: Any
    checkpoints_kept: Any
    checkpoint_kept_bytes: Any
    checkpoint_retention_s: Any
    checkpoints_kept_by_age: Any
    checkpoint_target_s: Any
    storage_needed_bytes_per_s: Any
    replicas: Any
    reconfigure_s: Any
    correlated_share: Any
    cold_restart_s: Any
    replica_stall_s: Any
    elastic_goodput: Any
    redundant_mtbf_s: Any
    redundant_goodput: Any
    sdc_mtbf_s: Any
    sdc_detection_s: Any
    sdc_test_interval_s: Any
    sdc_test_s: Any
    sdc_test_catch_share: Any
    sdc_test_lag_s: Any
    sdc_test_goodput: Any
    sdc_test_interval_best_s: Any
    replay_share: Any
    sdc_replay_lag_s: Any
    sdc_replay_goodput: Any
    abft_share: Any
    abft_catch_share: Any
    abft_goodput: Any
    straggler_mtbf_s: Any
    straggler_slowdown: Any
    straggler_detection_s: Any
    swap_s: Any
    straggler_loss_share: Any
    lemon_failure_share: Any
    lemon_catch_share: Any
    fenced_mtbf_s: Any
    bad_node_share: Any
    admission_catch_share: Any
    bad_nodes_left: Any
    bad_node_factor: Any
    admitted_mtbf_s: Any
    admission_test_s: Any
    admission_cost_usd: Any
    burn_in_s: Any
    burn_in_failures_saved: Any
    burn_in_cost_usd: Any
    building_s: Any
    delivery_lead_s: Any
    power_lead_s: Any
    accelerators_per_day: Any
    installation_s: Any
    ready_s: Any
    bring_up_idle_usd: Any
    exchange_share: Any
    neighbour_link_share: Any
    neighbour_slowdown: Any
    contended_share: Any
    tenancy_goodput: Any
    temperature_c: Any
    temperature_reference_c: Any
    activation_energy_ev: Any
    temperature_failure_factor: Any
    alarms_per_day: Any
    alarm_check_s: Any
    alarm_loss_share: Any
    diurnal_swing_share: Any
    diurnal_loss_share: Any
    sdc_goodput: Any
    sdc_rework_s: Any
    sdc_checkpoints_needed: Any
    failures_usd_per_day: Any
    interval_usd_per_day: Any
    restart_faster_s: Any
    restart_saving_usd_per_day: Any
    mtbf_factor: Any
    mtbf_saving_usd_per_day: Any
    spare_nodes: Any
    spare_nodes_enough: Any
    spares_usd_per_day: Any
    collective_bytes: Any
    collective_ranks: Any
    domain_ranks: Any
    link_bytes_per_s: Any
    link_latency_s: Any
    ring_all_reduce_s: Any
    all_to_all_s: Any
    collective: Any
    collective_algorithm: Any
    collective_start_s: Any
    collective_up_s: Any
    collective_out_s: Any
    collective_up_share: Any
    collective_out_share: Any
    collective_sum_share: Any
    domain_reduction_share: Any
    torus_axes: Any
    torus_side: Any
    bus_factor: Any
    ring_collective_s: Any
    tree_collective_s: Any
    in_network_collective_s: Any
    pat_collective_s: Any
    torus_collective_s: Any
    exchange_collective_s: Any
    collective_s: Any
    bus_bytes_per_s: Any
    two_tier_ring_s: Any
    scale_up_share: Any
    scale_out_share: Any
    routing_share: Any
    link_flows: Any
    routing_share_ecmp: Any
    incast_share: Any
    incast_share_paused: Any
    port_bytes_per_s: Any
    cable_m: Any
    frame_bytes: Any
    switch_buffer_bytes: Any
    lossless_classes: Any
    buffer_sharing: Any
    pause_headroom_bytes: Any
    pause_threshold_bytes: Any
    mark_threshold_bytes: Any
    pod_accelerators: Any
    in_network_reduction: Any
    tensor_up_share: Any
    context_up_share: Any
    ring_up_share: Any
    exchange_up_share: Any
    sustained_out_share: Any
    ring_out_share: Any
    exchange_out_share: Any
    scale_up_latency_s: Any
    scale_out_latency_s: Any
    expert_tensor_parallel: Any
    expert_data_parallel: Any
    optimizer_shards: Any
    stage_layers: Any
    stage_forward_s: Any
    stage_backward_s: Any
    stage_weight_gradient_s: Any
    stage_overlapped_s: Any
    pipeline_idle_s: Any
    pipeline_makespan_s: Any
    micro_batch_tokens: Any
    optimizer_bytes_per_parameter: Any
    update_bytes_per_parameter: Any
    gather_buffer_bytes: Any
    graph_pool_share: Any
    lora_rank: Any
    adapter_bytes: Any
    lora_matrices: Any
    adapter_dropout: Any
    adapter_parameters: Any
    trained_share: Any
    weight_bits: Any
    weight_bytes_per_parameter: Any
    stage_embedding_parameters: Any
    offloaded_optimizer_share: Any
    offloaded_gradients_share: Any
    offloaded_weights_share: Any
    host_link_bytes_per_s: Any
    host_updates_per_s: Any
    host_peak_bytes: Any
    stage_ffn_layers: Any
    stage_moe_layers: Any
    stage_sharded_parameters: Any
    stage_replicated_parameters: Any
    stage_expert_parameters: Any
    dropout: Any
    flash_attention: Any
    recompute_share: Any
    kept_share: Any
    activation_offload_share: Any
    kept_rows_share: Any
    layer_activation_bytes: Any
    layer_score_bytes: Any
    layer_kept_bytes: Any
    first_stage_activation_bytes: Any
    last_stage_activation_bytes: Any
    micro_batches_in_flight: Any
    logits_bytes: Any
    memory_workspace_bytes: Any
    eager_activation_factor: Any
    activation_factor: Any
    state_factor: Any
    memory_band: Any
    context_bytes: Any
    network_buffer_bytes: Any
    fragmentation_share: Any
    memory_needed_bytes: Any
    memory_reserve_bytes: Any
    accelerator_memory_bytes: Any
    software_year: Any
    peak_16bit_flop_per_s: Any
    gemm_ceiling: Any
    gemm_ceiling_16bit: Any
    memory_bytes_per_s: Any
    chip_year: Any
    design_j_per_flop: Any
    matrix_tile: Any
    exponentials_per_s: Any
    power_limit_share: Any
    vendor_kernels: Any
    fused_kernels: Any
    cuda_graphs: Any
    logits_layers: Any
    chunked_loss: Any
    whole_logits: Any
    held_boundaries: Any
    accumulated_gradient_bytes: Any
    tensor_overlap: Any
    gradient_overlap: Any
    tensorwise_shards: Any
    grouped_experts: Any
    dispatched_once: Any
    expert_overlap: Any
    interleaved_overlap: Any
    reduced_bytes_per_parameter: Any
    expert_imbalance: Any
    native_attention: Any
    message_s: Any
    dispatch_masks: Any
    newton_schulz_steps: Any
    grouped_tile_tokens: Any
    gemm_share_16bit: Any
    gemm_share_8bit: Any
    gemm_share_block: Any
    gemm_traffic_factor: Any
    gemm_wave_outputs: Any
    elementwise_factor: Any
    eager_traffic_factor: Any
    memory_rate_share: Any
    attention_share: Any
    state_share: Any
    state_chunk_tokens: Any
    attention_ramp_tokens: Any
    misaligned_factor: Any
    score_bytes: Any
    maturity_years: Any
    young_gemm_share: Any
    young_attention_share: Any
    maker_gain: Any
    power_exponent: Any
    full_power_j_per_flop: Any
    narrow_power_share: Any
    software_gain_per_year: Any
    layer_launch_s: Any
    eager_launch_factor: Any
    collective_skew_s: Any
    routing_launch_s: Any
    routing_wait_s: Any
    expert_launch_s: Any
    collective_launch_s: Any
    layer_fixed_s: Any
    layer_update_s: Any
    shard_part_s: Any
    step_fixed_s: Any
    straggler_share: Any
    tensor_exposed_plain: Any
    tensor_exposed_overlapped: Any
    expert_exposed_share: Any
    expert_exposed_across: Any
    expert_exposed_overlapped: Any
    context_exposed_share: Any
    gradient_overlap_share: Any
    gather_overlap_share: Any
    gather_contention_share: Any
    maturity: Any
    gemm_flop_per_s: Any
    gemm_16bit_flop_per_s: Any
    narrow_rate_share: Any
    held_rate_share: Any
    sustained_memory_bytes_per_s: Any
    layer_gemm_s: Any
    layer_attention_s: Any
    layer_state_s: Any
    layer_elementwise_s: Any
    gemm_passes: Any
    elementwise_passes: Any
    attention_passes: Any
    layer_compute_s: Any
    tensor_parallel_s: Any
    context_parallel_s: Any
    expert_parallel_s: Any
    launch_s: Any
    gather_s: Any
    layer_s: Any
    logits_s: Any
    logits_exposed_s: Any
    stage_transfer_s: Any
    stage_s: Any
    pipeline_wait_s: Any
    gradient_s: Any
    gradient_exposed_s: Any
    optimizer_s: Any
    evidence_families: Any
    evidence_software: Any
    assumed_inputs: Any
    spread_model: Any
    spread_new_chip: Any
    spread_new_software: Any
    spread_assumed: Any
    spread_experts: Any
    spread_states: Any
    spread_overhead: Any
    spread_across: Any
    spread_scale: Any
    scale_seen: Any
    spread_alone: Any
    unexplained_variance: Any
    step_pace: Any
    step_spread: Any
    step_tokens: Any
    training_steps: Any
    training_stepped_s: Any
    input_tokens: Any
    output_tokens: Any
    concurrent_requests: Any
    requests_per_s: Any
    attention_data_parallel: Any
    kv_bytes_per_element: Any
    served_bytes_per_parameter: Any
    serving_memory_share: Any
    draft_tokens: Any
    draft_acceptance: Any
    cached_input_share: Any
    prefill_separate: Any
    decode_memory_share: Any
    prefill_flop_share: Any
    serving_layer_s: Any
    serving_step_s: Any
    serving_message_s: Any
    serving_load_share: Any
    queued_prefills: Any
    serving_request_s: Any
    prefill_workers: Any
    prefill_accelerators: Any
    prompt_cost_share: Any
    input_tokens_cv: Any
    output_tokens_cv: Any
    latency_percentile: Any
    time_to_first_token_tail_s: Any
    time_per_output_token_tail_s: Any
    request_latency_tail_s: Any
    serving_usd_per_cached_token: Any
    api_usd_per_input_token: Any
    api_usd_per_output_token: Any
    break_even_requests_per_s: Any
    user_think_s: Any
    users_per_accelerator: Any
    serving_users: Any
    kv_elements_per_token: Any
    kv_bytes_per_token: Any
    state_bytes_per_request: Any
    context_tokens: Any
    cached_tokens: Any
    request_kv_bytes: Any
    kv_shards: Any
    replica_accelerators: Any
    served_weight_bytes: Any
    requests_in_memory: Any
    decode_requests: Any
    draft_step_tokens: Any
    accepted_tokens: Any
    touched_expert_share: Any
    decode_weight_bytes: Any
    product_parameters: Any
    decode_kv_bytes: Any
    decode_products_s: Any
    decode_attention_s: Any
    exchange_message_s: Any
    exchange_token_s: Any
    decode_step_s: Any
    prefill_flop: Any
    prefill_work_s: Any
    prefill_s: Any
    kv_transfer_s: Any
    prefill_backlog_s: Any
    time_per_output_token_s: Any
    batch_time_share: Any
    prefill_utilization: Any
    time_to_first_token_s: Any
    request_latency_s: Any
    output_tokens_per_s: Any
    output_tokens_per_s_per_accelerator: Any
    output_tokens_per_s_per_user: Any
    serving_replicas: Any
    serving_j_per_token: Any
    serving_usd_per_token: Any
    serving_usd_per_input_token: Any
    serving_usd_per_output_token: Any
    rollout_samples: Any
    rollout_accelerators: Any
    output_limit_tokens: Any
    output_spread: Any
    policy_lag_steps: Any
    tool_wait_s: Any
    reward_s: Any
    forward_passes: Any
    trained_models: Any
    optimizer_updates: Any
    rollout_slowdown: Any
    update_slowdown: Any
    weight_sync_base_s: Any
    post_training_overhead_s: Any
    replica_samples: Any
    longest_output_tokens: Any
    rollout_decode_steps: Any
    running_requests: Any
    rollout_s: Any
    policy_update_s: Any
    log_probability_s: Any
    weight_sync_s: Any
    post_training_step_s: Any
    rollout_utilization: Any
    trainer_utilization: Any
