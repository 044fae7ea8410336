// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Memory caches the results of the inspections of the current and the previous call. It saves most of the cost of a
// call, which is the verification of signatures and keys. It stores hashes of the inspected data, and no private key.
// Nil and the zero value cache nothing, and give the same results.
type Memory struct{ earlier, now findings }

type findings struct {
	inspections map[digest]inspection
	bundles     map[digest]Bundle
}

// Next returns a Memory for the next call that contains the results of the current call. Results that a call does not
// use are dropped by the call after it.
func (m *Memory) Next() *Memory {
	next := &Memory{now: findings{map[digest]inspection{}, map[digest]Bundle{}}}
	if m != nil {
		next.earlier = m.now
	}
	return next
}

// Inspect returns the result of the function Inspect, and caches it.
func (m *Memory) Inspect(c Certificate, hosts []string, now time.Time) Health {
	if m == nil || m.now.inspections == nil {
		return Inspect(c, hosts, now)
	}
	fields := [][]byte{c.CAPEM, c.CertPEM, c.KeyPEM}
	for _, host := range hosts {
		fields = append(fields, []byte(host))
	}
	id := digestOf(fields...)
	i, known := m.now.inspections[id]
	if !known {
		i, known = m.earlier.inspections[id]
	}
	if !known || !i.stands(now) {
		i = inspect(c, hosts, now)
	}
	m.now.inspections[id] = i
	return i.Health
}

// Bundle returns the result of ParseBundle, and caches it. The caller must not change it.
func (m *Memory) Bundle(data []byte) Bundle {
	if m == nil || m.now.bundles == nil {
		return ParseBundle(data)
	}
	id := digestOf(data)
	b, known := m.now.bundles[id]
	if !known {
		b, known = m.earlier.bundles[id]
	}
	if !known {
		b = ParseBundle(data)
	}
	m.now.bundles[id] = b
	return b
}

// digest is the SHA-256 of fields.
type digest [sha256.Size]byte

func digestOf(fields ...[]byte) digest {
	h := sha256.New()
	for _, field := range fields {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(field)))) // or what ends one could begin the next
		h.Write(field)
	}
	return digest(h.Sum(nil))
}
