// The peer on rhea; the commands are described in docs/internals/interop.md.
'use strict';

const readline = require('readline');
const rhea = require('rhea');
const {from_encoded, to_message} = require('./rhea_message.js');
const {PeerError, with_session} = require('./rhea_session.js');

// rhea hands out decoded messages only; the encoded bytes are kept beside them.
const decode = rhea.message.decode;
rhea.message.decode = (buffer) => Object.defineProperty(decode(buffer), 'encoded', {value: buffer});

function outcome_of(delivery) {
    const state = delivery.remote_state;
    if (!state) {
        return {state: null};
    }
    const outcome = {state: state.constructor.composite_type};
    if (outcome.state === 'rejected' && state.error) {
        outcome.condition = state.error.condition;
        outcome.description = state.error.description;
    } else if (outcome.state === 'modified') {
        outcome.delivery_failed = Boolean(state.delivery_failed);
        outcome.undeliverable_here = Boolean(state.undeliverable_here);
        outcome.annotations = state.message_annotations || {};
    }
    return outcome;
}

async function open_sender(session, address, settle) {
    const sender = session.connection.open_sender({
        target: {address: address}, autosettle: true, treat_modified_as_released: false,
        snd_settle_mode: settle === 'presettled' ? 1 : 0,
    });
    await session.event(session.container, 'sender_open');
    return sender;
}

// Resolves once the delivery has its outcome, and settles it where the receiver left that to us.
function decided(sender, delivery) {
    return new Promise((resolve) => {
        const check = () => {
            if (delivery.remote_state || delivery.remote_settled) {
                if (!delivery.remote_settled) {
                    delivery.update(true);
                }
                resolve();
            }
        };
        for (const event of ['accepted', 'rejected', 'released', 'modified', 'settled']) {
            sender.on(event, check);
        }
        check();
    });
}

async function wait_sendable(session, sender, timeout_s) {
    while (!sender.sendable()) {
        await session.event(sender, 'sendable', timeout_s);
    }
}

// Resolves once all is with the kernel; rhea keeps what the peer's credit or window does not cover yet.
async function flushed(link) {
    const outgoing = link.session.outgoing;
    const written = () => outgoing.next_pending_delivery === outgoing.next_delivery_id
        && !link.connection.socket.writableLength;
    do {
        await new Promise((resolve) => setTimeout(resolve, 5));
    } while (!written());
}

async function send(session, command, emit) {
    const messages = command.messages.map(to_message);
    const sender = await open_sender(session, command.address, command.settle);
    sender.setMaxListeners(0);
    const outcomes = [];
    for (const message of messages) {
        await wait_sendable(session, sender, command.timeout_s);
        const delivery = sender.send(message);
        outcomes.push(command.settle === 'presettled' ? null : decided(sender, delivery).then(() => delivery));
    }
    if (command.settle === 'presettled') {
        await flushed(sender);
        return {sent: messages.length};
    }
    for (const [index, outcome] of outcomes.entries()) {
        const delivery = await session.race(outcome, `outcome of message ${index}`, command.timeout_s);
        emit('outcome', {index: index, outcome: outcome_of(delivery)});
    }
    return {sent: messages.length};
}

const OUTCOMES = {
    accepted: (delivery) => delivery.accept(),
    rejected: (delivery, o) => delivery.reject(o.condition && {condition: o.condition, description: o.description}),
    released: (delivery) => delivery.release(),
    modified: (delivery, o) => delivery.modified({
        delivery_failed: o.delivery_failed, undeliverable_here: o.undeliverable_here,
        message_annotations: o.annotations,
    }),
};

function receiver_source(command) {
    const described = rhea.types.wrap_described;
    const filter = {};
    if (command.selector) {
        Object.assign(filter, rhea.filter.selector(command.selector));
    }
    if (command.no_local) {
        filter['no-local'] = described([], 'apache.org:no-local-filter:list');
    }
    const source = {address: command.address, dynamic: command.dynamic};
    return {
        ...source,
        ...(Object.keys(filter).length && {filter: filter}),
        ...(command.mode && {distribution_mode: command.mode}),
    };
}

async function open_receiver(session, command) {
    const receiver = session.connection.open_receiver({
        source: receiver_source(command), credit_window: 0, autoaccept: false, autosettle: true,
        rcv_settle_mode: command.settle === 'second' ? 1 : 0,
    });
    await session.event(session.container, 'receiver_open');
    return receiver;
}

// Reports each message, gives it its outcome, and counts up to `count`. Each outcome gets a turn of the
// event loop: rhea joins the dispositions of one turn and gives the second delivery the state of the first.
class Collector {
    constructor(session, receiver, command, emit) {
        this.received = 0;
        this.settling = [];
        this.complete = new Promise((resolve) => { this.resolve = resolve; });
        this.idle = Promise.resolve();
        receiver.on('message', (context) => {
            this.idle = this.idle.then(() => new Promise(setImmediate));
            this.idle = this.idle.then(() => this.take(context, receiver, command, emit));
            this.idle.catch(session.fail);
        });
    }

    take(context, receiver, command, emit) {
        const {message, delivery} = context;
        const outcomes = command.outcomes || [{state: 'accepted'}];
        const outcome = outcomes[this.received % outcomes.length];
        emit('message', {
            index: this.received, message: from_encoded(message.encoded), presettled: Boolean(delivery.remote_settled),
        });
        if (command.settle === 'second') {
            this.settling.push(new Promise((resolve) => {
                receiver.on('settled', () => delivery.remote_settled && resolve());
            }));
        }
        OUTCOMES[outcome.state](delivery, outcome);
        this.received += 1;
        if (this.received === command.count) {
            this.resolve();
        }
    }
}

// Credit that messages used up needs no flow from the sender: rhea has no event for that.
async function drain(session, receiver, collector, command) {
    const credit = command.credit || 100;
    receiver.add_credit(credit);
    receiver.drain_credit();
    const used_up = new Promise((resolve) => {
        receiver.on('message', () => receiver.credit === 0 && resolve());
        receiver.once('receiver_drained', resolve);
    });
    await session.race(used_up, 'drained', command.timeout_s);
    await collector.idle;
    await flushed(receiver);
    return {received: collector.received, drained: true};
}

async function receive(session, command, emit) {
    const receiver = await open_receiver(session, command);
    const collector = new Collector(session, receiver, command, emit);
    emit('attached', {address: receiver.source.address});
    if (command.own_messages) {
        await send(session, {address: command.address, messages: command.own_messages}, () => {});
        emit('sent-own', {});
    }
    if (command.drain) {
        return drain(session, receiver, collector, command);
    }
    receiver.add_credit(command.credit || command.count);
    await session.race(collector.complete, `message ${collector.received}`, command.timeout_s);
    await session.race(Promise.all(collector.settling), 'settling second', command.timeout_s);
    await flushed(receiver);
    return {received: collector.received, aborted: 0};
}

async function request(session, command, emit) {
    const count = command.messages.length;
    const receiver = await open_receiver(session, {dynamic: true});
    const collector = new Collector(session, receiver, {count: count}, emit);
    emit('attached', {address: receiver.source.address});
    receiver.add_credit(count);
    const sender = await open_sender(session, command.address);
    for (const [number, message] of command.messages.map(to_message).entries()) {
        await wait_sendable(session, sender, command.timeout_s);
        sender.send({...message, reply_to: receiver.source.address, correlation_id: `request-${number}`});
    }
    await session.race(collector.complete, 'replies', command.timeout_s);
    await flushed(receiver);
    return {received: count, aborted: 0};
}

async function respond(session, command, emit) {
    const sender = await open_sender(session, null);
    sender.setMaxListeners(0);
    const receiver = await open_receiver(session, command);
    const requests = [];
    let wake = () => {};
    receiver.on('message', (context) => { requests.push(context); wake(); });
    emit('attached', {address: receiver.source.address});
    receiver.add_credit(command.count);
    for (let answered = 0; answered < command.count; answered += 1) {
        if (requests.length === 0) {
            await session.race(new Promise((resolve) => { wake = resolve; }), 'a request', command.timeout_s);
        }
        const {message, delivery} = requests.shift();
        await wait_sendable(session, sender, command.timeout_s);
        const reply = {to: message.reply_to, correlation_id: message.correlation_id, body: message.body};
        await session.race(decided(sender, sender.send(reply)), 'outcome of a reply');
        delivery.accept();
    }
    await flushed(sender);
    return {answered: command.count};
}

// A broker refuses with an open and a close (AMQP 1.0 §2.4.1), which need not come in one read.
async function connect(session) {
    const connection = session.connection;
    await session.race(new Promise((resolve) => setTimeout(resolve, 50)), 'a close');
    return {
        container_id: connection.container_id,
        properties: connection.properties || {},
        offered_capabilities: [].concat(connection.offered_capabilities || []).map(String).sort(),
        tls: Boolean(connection.socket.encrypted),
    };
}

function encode(command) {
    return {encoded: command.messages.map((it) => rhea.message.encode(to_message(it)).toString('hex'))};
}

function decode_messages(command) {
    return {messages: command.encoded.map((digits) => from_encoded(Buffer.from(digits, 'hex')))};
}

const COMMANDS = {connect, send, receive, request, respond};
const OFFLINE = {encode: encode, decode: decode_messages};

function execute(command, emit) {
    if (OFFLINE[command.command]) {
        return OFFLINE[command.command](command);
    }
    return with_session(command, (session) => COMMANDS[command.command](session, command, emit));
}

async function run(command) {
    const emit = (event, fields) => console.log(JSON.stringify({id: command.id, event: event, ...fields}));
    try {
        emit('done', await execute(command, emit));
    } catch (error) {
        const text = error instanceof PeerError ? error.message : error.stack;
        emit('failed', {kind: error.kind || error.name, condition: error.condition || null, text: text});
    }
}

async function main() {
    const texts = process.argv.length > 2 ? process.argv.slice(2) : readline.createInterface({input: process.stdin});
    for await (const text of texts) {
        const document = JSON.parse(text);
        for (const command of Array.isArray(document) ? document : [document]) {
            await run(command);
        }
    }
}

main();
