"""The conformance kits: what every node (`nodes`) and every engine (`engines`) must do."""
