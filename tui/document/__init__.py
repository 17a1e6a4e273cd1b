"""One exchange as trees of lines that know their bytes, and the packets that carried it."""
