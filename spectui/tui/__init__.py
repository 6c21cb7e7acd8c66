"""The Textual dashboard: one face of the Session."""
