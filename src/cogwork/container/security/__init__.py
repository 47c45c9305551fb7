"""The security log: who came, who was refused, and who changed what."""
