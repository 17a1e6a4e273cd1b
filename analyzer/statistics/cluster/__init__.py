"""Advertised nodes, leaders and coordinators, and which addresses clients reached."""
