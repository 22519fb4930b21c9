"""When to turn clocks inside a step: marks in the GPU's work, and one file a framework that puts them there."""
