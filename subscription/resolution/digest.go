// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Digest is the same for catalogs of the same content, in whatever order their
// packages, channels, entries and bundles came to Build. The order of a bundle's
// properties counts. It is a key for caches, and proves nothing.
func (c *Catalog) Digest() string {
	if c == nil {
		return ""
	}
	return c.digest.String()
}

// digest is the sum of the hashes of all pieces, so that their order does not
// matter.
type digest [4]uint64

func (d *digest) String() string {
	var b []byte
	for _, word := range d {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return hex.EncodeToString(b)
}

// digester adds pieces, each a list of texts.
type digester struct {
	total  digest
	buffer []byte
}

func (d *digester) begin(texts ...string) {
	d.buffer = d.buffer[:0]
	d.texts(texts...)
}

func (d *digester) texts(texts ...string) {
	for _, text := range texts {
		d.buffer = binary.AppendUvarint(d.buffer, uint64(len(text)))
		d.buffer = append(d.buffer, text...)
	}
}

func (d *digester) properties(list []olmcore.Property) {
	for i := range list {
		d.texts(list[i].Type)
		d.buffer = binary.AppendUvarint(d.buffer, uint64(len(list[i].Value)))
		d.buffer = append(d.buffer, list[i].Value...)
	}
}

func (d *digester) end() {
	sum := sha256.Sum256(d.buffer)
	for i := range d.total {
		d.total[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
}

// add takes in one package as its author wrote it.
func (d *digester) add(p *Package) {
	d.begin("package", p.Name, p.DefaultChannel)
	d.properties(p.Properties)
	d.end()
	for i := range p.Channels {
		ch := &p.Channels[i]
		d.begin("channel", p.Name, ch.Name)
		d.properties(ch.Properties)
		d.end()
		for _, e := range ch.Entries {
			d.begin("entry", p.Name, ch.Name, e.Name, e.Replaces, e.SkipRange)
			d.texts(slices.Sorted(slices.Values(e.Skips))...)
			d.end()
		}
	}
	for i := range p.Bundles {
		b := &p.Bundles[i]
		d.begin("bundle", p.Name, b.Name, b.Image)
		d.properties(b.Properties)
		for _, o := range b.Objects {
			text, err := json.Marshal(o)
			d.texts(fmt.Sprintf("%T", o), string(text), strconv.FormatBool(err == nil))
		}
		d.end()
	}
	for _, x := range p.Deprecations {
		d.begin("deprecation", p.Name, x.Channel, x.Bundle, x.Message)
		d.end()
	}
}

// Fingerprint is the same for inputs that Resolve answers alike, apart from the
// Subscriptions, their plans, and what the caller sets itself: OperatorGroups,
// existing ClusterServiceVersions, and catalogs. Whoever hands an answer back to
// package subscription keeps it with its answer, and drops the answer when it
// changes: nothing else tells that an operator went away which an upgrade waited
// for. What of a Subscription matters is in the answer's Observed.
func (in *Input) Fingerprint() string {
	d := digester{}
	for _, g := range in.OperatorGroups {
		if g != nil && g.Namespace == in.Namespace {
			d.begin("group", g.Name, string(g.UID), string(g.Spec.UpgradeStrategy), g.Annotations[exclusionAnnotation])
			d.texts(g.Status.Namespaces...)
			d.end()
		}
	}
	for _, c := range in.CSVs {
		if c != nil && c.Namespace == in.Namespace && !isCopied(c) {
			d.csv(c)
		}
	}
	for i := range in.Catalogs {
		c := &in.Catalogs[i]
		d.begin("catalog", c.Key.Namespace, c.Key.Name, strconv.Itoa(c.Priority), strconv.FormatBool(c.Content != nil), c.Content.Digest(), strconv.FormatBool(c.Stale), c.Problem)
		d.end()
	}
	return d.total.String()
}

// csv takes in what resolution reads of an existing ClusterServiceVersion.
func (d *digester) csv(c *v1alpha1.ClusterServiceVersion) {
	text, annotated := c.Annotations[propertiesAnnotation]
	d.begin("csv", c.Name, string(c.UID), string(c.Status.Phase), strconv.FormatBool(c.DeletionTimestamp != nil), c.Spec.Replaces, c.Spec.Version.String(), strconv.FormatBool(annotated), text)
	for _, list := range [...][]v1alpha1.CRDDescription{c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required} {
		d.texts(strconv.Itoa(len(list)))
		for _, x := range list {
			d.texts(x.Name, x.Version, x.Kind)
		}
	}
	for _, list := range [...][]v1alpha1.APIServiceDescription{c.Spec.APIServiceDefinitions.Owned, c.Spec.APIServiceDefinitions.Required} {
		d.texts(strconv.Itoa(len(list)))
		for _, x := range list {
			d.texts(x.Group, x.Version, x.Kind)
		}
	}
	d.end()
}
