# An image of Cogwork, built from these sources:
#     docker build --tag cogwork .
# A configuration for it is written by
#     docker run --rm --user "$(id -u)" --volume "$PWD:/here" cogwork init /here
# and used, after its listener has been given the host 0.0.0.0, by
#     docker run --read-only --volume "$PWD/cogwork.toml:/etc/cogwork/cogwork.toml:ro" \
#         --volume cogwork:/var/lib/cogwork --publish 127.0.0.1:5672:5672 cogwork
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
WORKDIR /src
COPY . .
RUN python -m venv /opt/cogwork \
    && /opt/cogwork/bin/pip install --no-cache-dir ".[auth,metrics,schema,shell,tls]"

FROM python:3.13-slim
COPY --from=build /opt/cogwork /opt/cogwork
ENV PATH=/opt/cogwork/bin:$PATH
RUN useradd --uid 1000 --user-group --home-dir /var/lib/cogwork --no-create-home cogwork \
    && install -d -o cogwork -g cogwork -m 0700 /var/lib/cogwork
USER cogwork
VOLUME /var/lib/cogwork
EXPOSE 5672
STOPSIGNAL SIGTERM
# A container answers a protocol header at once (AMQP 1.0 §2.2), whoever asks, without a login.
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import socket; c = socket.create_connection(('127.0.0.1', 5672), 5); c.sendall(b'AMQP\\x03\\x01\\x00\\x00'); assert c.recv(4) == b'AMQP'"]
ENTRYPOINT ["cogwork"]
CMD ["serve", "--config", "/etc/cogwork/cogwork.toml", "--data", "/var/lib/cogwork"]
