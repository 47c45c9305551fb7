"""The driver of oslo.messaging for AMQP 1.0: `transport_url = amqp://host1,host2/vhost`.

Theory of operation. An application's threads never touch a socket. Each hands what it wants to
send to the one event loop of the process, which runs in a native thread of its own (`loop_thread`,
also where the program is patched for green threads), and sleeps until that says what became of it
(`waiter`). A driver instance keeps one connection (`connection`), made when it is first needed and
again in the child of a fork: on it, a link for each address that it sends to (`senders`), one
dynamic source for the replies to its calls (`replies`), and the links of its listeners
(`subscription`). A message on its way is a `Sending`: it is retried only where it is certain that
nobody has had it.

oslo.messaging is needed: `pip install cogwork[oslo]`. docs/oslo.md tells the rest.
"""
