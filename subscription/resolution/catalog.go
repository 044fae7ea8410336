// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/olmcore"
)

// Catalog is the content of one catalog, indexed for Resolve. Build makes it.
// It never changes: any number of calls may use it at the same time, and one
// Catalog may stand for several CatalogSources.
type Catalog struct {
	packages map[string]*catalogPackage
	sorted   []*catalogPackage // by name
	// The entries that can be chosen for a requirement, in the order of
	// preference inside a catalog: default channels first, then by package and
	// channel name, then from the head of the channel down.
	byAPI     map[gvk][]*entry
	byLabel   map[string][]*entry
	byPackage map[string][]*entry
	all       []*entry
	// malformed are the channels without order; invalid counts
	// the bundles that must not be selected.
	malformed []*channel
	invalid   int
	digest    digest
}

type catalogPackage struct {
	name     string
	channels []*channel // the default first, then by name
	// chains is every channel's chain, in that order: what a Subscription without
	// a channel chooses from.
	chains       []*entry
	deprecations []Deprecation
}

type channel struct {
	pkg       *catalogPackage
	name      string
	isDefault bool
	byName    map[string]*entry
	// chain is the entries in order of preference, head first, without the
	// skipped ones; nil when malformed says that there is no such order.
	chain     []*entry
	malformed string
	// rank is the channel's place in the order of byAPI.
	rank int32
}

// entry is one bundle in one channel, or an existing ClusterServiceVersion: what
// resolution chooses. Its address is its identity.
type entry struct {
	*bundle
	channel  *channel // nil for an existing one
	replaces string
	skips    []string
	skip     *versionRange // nil: none
	// position counts from the head; -1 when the entry is not in the chain.
	position int32
	// stranded: no head leads to it, and nobody skips it.
	stranded bool
}

// bundle is what all entries of one bundle share.
type bundle struct {
	facts
	name string
	pkg  string
	// version is 0.0.0 without hasVersion.
	version    semver.Version
	hasVersion bool
	text       string // the version as written
	image      string
	objects    []olmcore.Object
}

// Packages returns the names of the catalog's packages, sorted.
func (c *Catalog) Packages() []string {
	if c == nil {
		return nil
	}
	names := make([]string, len(c.sorted))
	for i, p := range c.sorted {
		names[i] = p.name
	}
	return names
}

// Channels returns the names of a package's channels, the default channel
// first, then by name; nil when there is no such package.
func (c *Catalog) Channels(pkg string) []string {
	if c == nil || c.packages[pkg] == nil {
		return nil
	}
	var names []string
	for _, ch := range c.packages[pkg].channels {
		names = append(names, ch.name)
	}
	return names
}

// Chain returns the names of a channel's bundles in the order of preference:
// the head, then what it replaces, and so on, without the skipped ones. It is
// nil when there is no such channel or its upgrade graph has no such order.
func (c *Catalog) Chain(pkg, channel string) []string {
	if c == nil || c.packages[pkg] == nil {
		return nil
	}
	ch := c.packages[pkg].channel(channel)
	if ch == nil {
		return nil
	}
	var names []string
	for _, e := range ch.chain {
		names = append(names, e.name)
	}
	return names
}

// Deprecations returns what the catalog says about a package, as written.
func (c *Catalog) Deprecations(pkg string) []Deprecation {
	if c == nil || c.packages[pkg] == nil {
		return nil
	}
	return slices.Clone(c.packages[pkg].deprecations)
}

func (p *catalogPackage) channel(name string) *channel {
	for _, ch := range p.channels {
		if ch.name == name {
			return ch
		}
	}
	return nil
}

// index fills the catalog's lookups once all packages stand.
func (c *Catalog) index() {
	slices.SortFunc(c.sorted, func(a, b *catalogPackage) int { return cmp.Compare(a.name, b.name) })
	var channels []*channel
	for _, p := range c.sorted {
		channels = append(channels, p.channels...)
	}
	slices.SortStableFunc(channels, func(a, b *channel) int {
		if a.isDefault != b.isDefault {
			if a.isDefault {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.pkg.name, b.pkg.name), cmp.Compare(a.name, b.name))
	})
	total, apis := 0, map[gvk]int{}
	for _, ch := range channels {
		total += len(ch.chain)
		for _, e := range ch.chain {
			for _, g := range e.provides {
				apis[g]++
			}
		}
	}
	c.all = make([]*entry, 0, total)
	c.byAPI = make(map[gvk][]*entry, len(apis))
	for i, ch := range channels {
		if ch.malformed != "" {
			c.malformed = append(c.malformed, ch)
		}
		ch.rank = int32(i)
		c.all = append(c.all, ch.chain...)
		for _, e := range ch.chain {
			c.indexEntry(e, apis)
		}
	}
}

func (c *Catalog) indexEntry(e *entry, apis map[gvk]int) {
	for _, g := range e.provides {
		list, ok := c.byAPI[g]
		if !ok {
			list = make([]*entry, 0, apis[g])
		}
		c.byAPI[g] = append(list, e)
	}
	for _, label := range e.labels {
		c.byLabel[label] = append(c.byLabel[label], e)
	}
	c.byPackage[e.pkg] = append(c.byPackage[e.pkg], e)
	for i := range e.packages {
		if name := e.packages[i].name; name != e.pkg {
			c.byPackage[name] = append(c.byPackage[name], e)
		}
	}
}

// compareEntries is the order of preference of two entries of one catalog.
func compareEntries(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.channel.rank, b.channel.rank), cmp.Compare(a.position, b.position))
}
