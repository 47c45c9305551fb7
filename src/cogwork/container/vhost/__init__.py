"""Virtual hosts: an address space each, with the nodes in it and the links to them.

Begin reading at `virtual_host`; `attachments` decides over each attach.
"""
