// Between the typed notation and rhea's typed values. Everything is written and read with rhea's own
// `types`: its ordinary decoding to JavaScript values would lose the names of the types.
'use strict';

const crypto = require('crypto');
const rhea = require('rhea');
const types = rhea.types;

const PATTERN = Buffer.from(Array.from({length: 251}, (_, i) => i));
const INLINE_LIMIT_BYTES = 4096;

const NAMES_BY_CODE = {
    0x40: 'null', 0x41: 'boolean', 0x42: 'boolean', 0x56: 'boolean',
    0x50: 'ubyte', 0x60: 'ushort', 0x70: 'uint', 0x52: 'uint', 0x43: 'uint',
    0x80: 'ulong', 0x53: 'ulong', 0x44: 'ulong', 0x51: 'byte', 0x61: 'short',
    0x71: 'int', 0x54: 'int', 0x81: 'long', 0x55: 'long', 0x72: 'float', 0x82: 'double',
    0x74: 'decimal32', 0x84: 'decimal64', 0x94: 'decimal128', 0x73: 'char', 0x83: 'timestamp',
    0x98: 'uuid', 0xa0: 'binary', 0xb0: 'binary', 0xa1: 'string', 0xb1: 'string',
    0xa3: 'symbol', 0xb3: 'symbol', 0x45: 'list', 0xc0: 'list', 0xd0: 'list',
    0xc1: 'map', 0xd1: 'map', 0xe0: 'array', 0xf0: 'array',
};

const ELEMENT_CODES = {
    boolean: 0x56, ubyte: 0x50, ushort: 0x60, uint: 0x70, ulong: 0x80, byte: 0x51, short: 0x61,
    int: 0x71, long: 0x81, float: 0x72, double: 0x82, decimal32: 0x74, decimal64: 0x84,
    decimal128: 0x94, char: 0x73, timestamp: 0x83, uuid: 0x98, binary: 0xb0, string: 0xb1,
    symbol: 0xb3, list: 0xd0, map: 0xd1,
};

function int64_buffer(text) {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64BE(BigInt.asUintN(64, BigInt(text)));
    return buffer;
}

function hex(digits) {
    return Buffer.from(digits, 'hex');
}

function generated_body(size_bytes) {
    return Buffer.alloc(size_bytes, PATTERN);
}

function binary_content(notation) {
    return typeof notation === 'string' ? hex(notation) : generated_body(notation.size_bytes);
}

function binary_notation(buffer) {
    if (buffer.length <= INLINE_LIMIT_BYTES) {
        return buffer.toString('hex');
    }
    const sha256 = crypto.createHash('sha256').update(buffer).digest('hex');
    return {size_bytes: buffer.length, sha256: sha256};
}

const TO_RAW = {
    null: () => null,
    ulong: int64_buffer, long: int64_buffer, timestamp: int64_buffer,
    float: (digits) => hex(digits).readFloatBE(), double: (digits) => hex(digits).readDoubleBE(),
    decimal32: hex, decimal64: hex, decimal128: hex,
    uuid: (text) => hex(text.replace(/-/g, '')), binary: binary_content,
    list: (items) => items.map(to_rhea), map: (pairs) => pairs.flat().map(to_rhea),
};

function to_raw(name, value) {
    return TO_RAW[name] ? TO_RAW[name](value) : value;
}

const WRAPPERS = {
    null: types.Null, timestamp: types.Timestamp, uuid: types.Uuid, map: types.Map32,
    decimal32: types.Decimal32, decimal64: types.Decimal64, decimal128: types.Decimal128,
};

// Returns rhea's typed value for a value in the notation.
function to_rhea(typed) {
    const [name, value] = typed;
    if (name === 'described') {
        return types.described(to_rhea(typed[1]), to_rhea(typed[2]));
    }
    if (name === 'array') {
        return array_to_rhea(typed[1], typed[2]);
    }
    const wrapper = WRAPPERS[name] || types['wrap_' + name];
    return wrapper(to_raw(name, value));
}

function array_to_rhea(element, values) {
    const name = Array.isArray(element) ? element[2] : element;
    const descriptor = Array.isArray(element) ? to_rhea(element[1]) : undefined;
    return types.wrap_array(values.map((value) => to_raw(name, value)), ELEMENT_CODES[name], descriptor);
}

function signed_text(value) {
    return Buffer.isBuffer(value) ? value.readBigInt64BE().toString() : BigInt(value).toString();
}

function float_digits(value) {
    const buffer = Buffer.alloc(4);
    buffer.writeFloatBE(value);
    return buffer.toString('hex');
}

function double_digits(value) {
    const buffer = Buffer.alloc(8);
    buffer.writeDoubleBE(value);
    return buffer.toString('hex');
}

function uuid_text(buffer) {
    return buffer.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function pairs(items) {
    return items.filter((_, i) => i % 2 === 0).map((key, i) => [from_rhea(key), from_rhea(items[2 * i + 1])]);
}

const FROM_RAW = {
    null: () => null, boolean: Boolean,
    ulong: (value) => Buffer.isBuffer(value) ? value.readBigUInt64BE().toString() : String(value),
    long: signed_text, timestamp: (date) => signed_text(date.getTime()),
    float: float_digits, double: double_digits,
    decimal32: (b) => b.toString('hex'), decimal64: (b) => b.toString('hex'), decimal128: (b) => b.toString('hex'),
    uuid: uuid_text, binary: binary_notation, list: (items) => items.map(from_rhea), map: pairs,
};

function from_raw(name, value) {
    return FROM_RAW[name] ? FROM_RAW[name](value) : value;
}

// Returns the notation of a value that rhea's Reader returned.
function from_rhea(typed) {
    const name = NAMES_BY_CODE[typed.type.typecode];
    let notation = [name, null];
    if (name === 'array') {
        notation = array_from_rhea(typed);
    } else {
        notation = [name, from_raw(name, typed.value)];
    }
    return typed.descriptor ? ['described', from_rhea(typed.descriptor), notation] : notation;
}

function array_from_rhea(typed) {
    const element = NAMES_BY_CODE[typed.array_constructor.typecode];
    const descriptor = typed.array_constructor.descriptor;
    const values = typed.value.map((item) => from_raw(element, item.value));
    return ['array', descriptor ? ['described', from_rhea(descriptor), element] : element, values];
}

module.exports = {to_rhea, from_rhea, binary_content};
