"""The supervisor: observe → decide → act, with the clients, for one stream at a time."""
