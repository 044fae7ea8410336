// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/olmcore/olm/olmcore"
)

// Digest returns a digest of the content that was passed to Build. The digest depends on the order of properties, but
// not on the order of packages, channels, entries and bundles. Digest is intended as a cache key, and is not secure
// against collisions. The digest of a nil Catalog is empty.
func (c *Catalog) Digest() string {
	if c == nil {
		return ""
	}
	return c.digest
}

// Digester computes a digest of pieces. A piece is a list of strings. The order of the pieces has no effect on the
// digest. The zero value is ready to use.
type Digester struct {
	total [4]uint64
	piece []byte
}

// Begin starts a piece with the given strings. Call Texts to add more strings, and then End to add the piece to the
// digest.
func (d *Digester) Begin(texts ...string) {
	d.piece = d.piece[:0]
	d.Texts(texts...)
}

// Texts adds strings to the current piece.
func (d *Digester) Texts(texts ...string) {
	for _, text := range texts {
		d.piece = binary.AppendUvarint(d.piece, uint64(len(text)))
		d.piece = append(d.piece, text...)
	}
}

// End adds the current piece to the digest.
func (d *Digester) End() {
	sum := sha256.Sum256(d.piece)
	for i := range d.total {
		d.total[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
}

// merge adds the pieces of another sum.
func (d *Digester) merge(other *Digester) {
	for i := range d.total {
		d.total[i] += other.total[i]
	}
}

// Sum returns the digest in hexadecimal.
func (d *Digester) Sum() string {
	var b []byte
	for _, word := range d.total {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return hex.EncodeToString(b)
}

func (d *Digester) properties(list []olmcore.Property) {
	for i := range list {
		d.Texts(list[i].Type)
		d.piece = binary.AppendUvarint(d.piece, uint64(len(list[i].Value)))
		d.piece = append(d.piece, list[i].Value...)
	}
}

func (d *Digester) add(p *Package) {
	d.Begin("package", p.Name, p.DefaultChannel)
	d.properties(p.Properties)
	d.End()
	for _, ch := range p.Channels {
		d.Begin("channel", p.Name, ch.Name)
		d.properties(ch.Properties)
		d.End()
		for _, e := range ch.Entries {
			d.Begin("entry", p.Name, ch.Name, e.Name, e.Replaces, e.SkipRange)
			d.Texts(slices.Sorted(slices.Values(e.Skips))...)
			d.End()
		}
	}
	for i := range p.Bundles {
		b := &p.Bundles[i]
		d.Begin("bundle", p.Name, b.Name, b.Image)
		d.properties(b.Properties)
		for _, o := range b.Objects {
			text, err := json.Marshal(o)
			d.Texts(fmt.Sprintf("%T", o), string(text), strconv.FormatBool(err == nil))
		}
		d.End()
	}
	for _, x := range p.Deprecations {
		d.Begin("deprecation", p.Name, x.Channel, x.Bundle, x.Message)
		d.End()
	}
}
