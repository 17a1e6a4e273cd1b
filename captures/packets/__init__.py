"""From a captured record to a TCP segment: link layers, tunnels, IP, fragments."""
