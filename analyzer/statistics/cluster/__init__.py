"""Nodes, leaders and coordinators as brokers told them, and which addresses clients reached."""
