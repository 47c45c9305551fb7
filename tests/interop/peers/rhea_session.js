// One connection of rhea for one command: its options, and promises for its events.
'use strict';

const fs = require('fs');
const net = require('net');
const rhea = require('rhea');
const WebSocket = require('ws');

const TIMEOUT_S = 20;

class PeerError extends Error {
    constructor(kind, text, condition) {
        super(text);
        this.kind = kind;
        this.condition = condition || null;
    }
}

function endpoint_error(kind, endpoint) {
    const error = endpoint.error || {};
    return new PeerError(kind, `${kind} closed by the broker: ${error.condition} ${error.description}`, error.condition);
}

function sasl_options(options) {
    if (options.sasl === 'PLAIN') {
        return {username: options.user, password: options.password};
    }
    return options.sasl === 'EXTERNAL' ? {enable_sasl_external: true} : {username: 'anonymous'};
}

function tls_options(options) {
    const read = (name) => options[name] && fs.readFileSync(options[name]);
    return {ca: read('ca'), cert: read('certificate'), key: read('key')};
}

function connection_options(options) {
    const url = new URL(options.url);
    const common = {
        host: url.hostname, port: Number(url.port), hostname: options.hostname || url.hostname, reconnect: false,
        max_frame_size: options.max_frame_size,
        idle_time_out: options.idle_timeout_s && options.idle_timeout_s * 1000,
        ...sasl_options(options),
    };
    if (url.protocol === 'unix:') {
        const connect = (port, host, details, callback) => net.connect({path: url.pathname}, callback);
        return {...common, hostname: options.hostname, connection_details: () => ({connect: connect})};
    }
    if (url.protocol.startsWith('ws')) {
        const connect = rhea.websocket_connect(WebSocket);
        return {...common, connection_details: connect(options.url, ['amqp'], tls_options(options))};
    }
    return url.protocol === 'amqps:' ? {...common, transport: 'tls', ...tls_options(options)} : common;
}

// One connection for one command: promises for its events, and one failure that ends them all.
class Session {
    constructor(options) {
        this.container = rhea.create_container();
        this.failure = new Promise((_, reject) => { this.fail = reject; });
        this.failure.catch(() => {});
        for (const kind of ['sender', 'receiver', 'session', 'connection']) {
            this.container.on(kind + '_error', (context) => this.fail(this.error_of(kind, context)));
        }
        this.container.on('disconnected', (context) => this.fail(this.disconnection(context)));
        this.container.on('error', (error) => this.fail(new PeerError('connection', String(error), error.condition)));
        this.container.on('protocol_error', (error) => this.fail(new PeerError('protocol', String(error))));
        this.connection = this.container.connect(connection_options(options));
    }

    error_of(kind, context) {
        const link = kind === 'sender' || kind === 'receiver';
        const error = endpoint_error(link ? 'link' : kind, context[kind] || context.connection);
        if (/authenticate|mechanism/i.test(String(this.connection.get_error && this.connection.get_error()))) {
            error.kind = 'authentication';
        }
        return error;
    }

    disconnection(context) {
        const cause = context.error || this.connection.transport_error;
        const text = cause ? String(cause.message || cause.description || cause) : 'disconnected';
        return new PeerError(/authenticate|mechanism/i.test(text) ? 'authentication' : 'connection', text);
    }

    async race(promise, what, timeout_s = TIMEOUT_S) {
        let timer;
        const timeout = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new PeerError('timeout', `timed out: ${what}`)), timeout_s * 1000);
        });
        try {
            return await Promise.race([promise, this.failure, timeout]);
        } finally {
            clearTimeout(timer);
        }
    }

    event(emitter, name, timeout_s) {
        return this.race(new Promise((resolve) => emitter.once(name, resolve)), name, timeout_s);
    }

    async close() {
        this.container.removeAllListeners('disconnected');
        if (this.connection.is_open()) {
            const closed = this.event(this.container, 'connection_close', 5);
            this.connection.close();
            await closed.catch(() => {});
        }
        const socket = this.connection.socket;
        if (socket) {
            (socket.destroy ? socket.destroy() : socket.end());
        }
    }
}

async function with_session(command, use) {
    const session = new Session(command.connection);
    try {
        await session.event(session.container, 'connection_open', command.timeout_s);
        return await use(session);
    } finally {
        await session.close();
    }
}

module.exports = {PeerError, with_session};
