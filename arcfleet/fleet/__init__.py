"""What every process of a fleet shares: the fleet document, client settings, and the fleet's topics."""
