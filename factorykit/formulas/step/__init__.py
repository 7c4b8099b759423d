"""Time of one optimizer step, built from one mean layer and one micro-batch on the fullest rank."""

from factorykit.formulas.step import communication, features, interval, layer, parts, rates, training, whole

__all__ = ["communication", "features", "interval", "layer", "parts", "rates", "training", "whole"]
