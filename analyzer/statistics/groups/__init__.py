"""Consumer groups: members, generations, and why each rebalance happened."""
