// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Memory is what the inspections of a call found: whoever hands it to the next call spares that the verification of
// signatures and keys, which is most of its cost. It knows a certificate by a hash of all that was inspected, and holds no
// key. Nil knows nothing, and is always right.
type Memory struct{ earlier, found map[digest]inspection }

// Next returns the Memory of a call that knows what the one before found.
func (m *Memory) Next() *Memory {
	next := &Memory{found: map[digest]inspection{}}
	if m != nil {
		next.earlier = m.found
	}
	return next
}

// Inspect returns what the function Inspect does, and remembers it. m is what Next returned.
func (m *Memory) Inspect(c Certificate, hosts []string, now time.Time) Health {
	id := digestOf(c, hosts)
	i, known := m.found[id]
	if !known {
		i, known = m.earlier[id]
	}
	if !known || !i.stands(now) {
		i = inspect(c, hosts, now)
	}
	m.found[id] = i
	return i.Health
}

// digest is the SHA-256 of a certificate with its key, its authority, and the hosts that it shall be good for.
type digest [sha256.Size]byte

func digestOf(c Certificate, hosts []string) (d digest) {
	h := sha256.New()
	add := func(field []byte) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(field)))) // or two fields could be cut in another place
		h.Write(field)
	}
	add(c.CAPEM)
	add(c.CertPEM)
	add(c.KeyPEM)
	for _, host := range hosts {
		add([]byte(host))
	}
	return digest(h.Sum(nil))
}
