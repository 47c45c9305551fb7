"""What people see: tables, messages and pictures as text, and lines they type."""
