// Messages between the typed notation and rhea (AMQP 1.0 §3.2).
'use strict';

const rhea = require('rhea');
const {to_rhea, from_rhea, binary_content} = require('./rhea_notation.js');

const COMPOSITES = {
    0x70: ['header', ['durable', 'priority', 'ttl', 'first_acquirer', 'delivery_count']],
    0x73: ['properties', [
        'message_id', 'user_id', 'to', 'subject', 'reply_to', 'correlation_id', 'content_type',
        'content_encoding', 'absolute_expiry_time', 'creation_time', 'group_id', 'group_sequence',
        'reply_to_group_id',
    ]],
};
const MAPS = {
    0x71: 'delivery_annotations', 0x72: 'message_annotations', 0x74: 'application_properties', 0x78: 'footer',
};
const BODIES = {0x75: 'data', 0x76: 'sequence'};

// Fields that rhea takes as plain values and wraps itself; message ids it takes as typed values.
function field_value(name, typed) {
    if (name === 'message_id' || name === 'correlation_id') {
        return to_rhea(typed);
    }
    if (typed[0] === 'binary') {
        return binary_content(typed[1]);
    }
    return typed[0] === 'timestamp' ? Number(typed[1]) : typed[1];
}

function mapping(notation) {
    return notation && Object.fromEntries(notation.map(([key, value]) => [key[1], to_rhea(value)]));
}

function to_body(body) {
    if (body.value) {
        return to_rhea(body.value);
    }
    if (body.data) {
        return rhea.message.data_sections(body.data.map(binary_content));
    }
    return rhea.message.sequence_sections(body.sequence.map((items) => items.map(to_rhea)));
}

// Returns the rhea message for a message in the typed notation.
function to_message(notation) {
    const message = {body: to_body(notation.body)};
    for (const section of ['header', 'properties']) {
        for (const [name, typed] of Object.entries(notation[section] || {})) {
            message[name] = field_value(name, typed);
        }
    }
    for (const section of Object.values(MAPS)) {
        if (notation[section]) {
            message[section] = mapping(notation[section]);
        }
    }
    return message;
}

function composite(fields, section) {
    const named = section.value.map((item, i) => [fields[i], from_rhea(item)]);
    return Object.fromEntries(named.filter(([, typed]) => typed[0] !== 'null'));
}

function read_section(message, section) {
    const code = section.descriptor.value;
    delete section.descriptor;
    if (COMPOSITES[code]) {
        const [name, fields] = COMPOSITES[code];
        const named = composite(fields, section);
        if (Object.keys(named).length > 0) {
            message[name] = named;
        }
    } else if (MAPS[code]) {
        message[MAPS[code]] = from_rhea(section)[1];
    } else if (BODIES[code]) {
        const kind = BODIES[code];
        message.body = message.body || {[kind]: []};
        message.body[kind].push(from_rhea(section)[1]);
    } else {
        message.body = {value: from_rhea(section)};
    }
}

// Returns the notation of an encoded message.
function from_encoded(buffer) {
    const reader = new rhea.types.Reader(buffer);
    const message = {};
    while (reader.remaining()) {
        read_section(message, reader.read());
    }
    return message;
}

module.exports = {to_message, from_encoded};
