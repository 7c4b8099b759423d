"""Public datasets: connectors, publishers and refresh."""
