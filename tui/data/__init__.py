"""What the screens show, without a widget: the reading process, the store, views."""
