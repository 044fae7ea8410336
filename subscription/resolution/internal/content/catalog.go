// SPDX-License-Identifier: Apache-2.0

package content

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/olmcore"
)

// Catalog is the content of one catalog, indexed for Resolve. Build makes it. It never changes: any number of calls
// may use it at the same time, and one Catalog may stand for several CatalogSources.
type Catalog struct {
	ByName map[string]*PackageIndex
	Sorted []*PackageIndex // by name
	// The entries that can be chosen for a requirement, in the order of preference inside a catalog: default channels
	// first, then by package and channel name, then from the head of the channel down.
	ByAPI     map[API][]*Entry
	ByLabel   map[string][]*Entry
	ByPackage map[string][]*Entry
	All       []*Entry
	// malformed are the channels without order; invalid counts the bundles that must not be selected.
	Malformed []*ChannelIndex
	Invalid   int
	// HasRules: some bundle has a CEL rule.
	HasRules bool
	digest   string
}

// PackageIndex is one package of a Catalog.
type PackageIndex struct {
	Name     string
	Channels []*ChannelIndex // the default first, then by name
	// chains is every channel's chain, in that order: what a Subscription without a channel chooses from.
	Chains       []*Entry
	deprecations []Deprecation
	// Digest is that of a catalog with this package alone.
	Digest string
}

// ChannelIndex is one channel of a package.
type ChannelIndex struct {
	Pkg       *PackageIndex
	Name      string
	isDefault bool
	ByName    map[string]*Entry
	// chain is the entries in order of preference, head first, without the skipped ones; nil when malformed says that
	// there is no such order.
	Chain     []*Entry
	Malformed string
	// rank is the channel's place in the order of byAPI.
	rank int32
}

// Entry is one bundle in one channel, or an existing ClusterServiceVersion: what resolution chooses. Its address is
// its identity.
type Entry struct {
	*ParsedBundle
	Channel  *ChannelIndex // nil for an existing one
	Replaces string
	Skips    []string
	Skip     *VersionRange // nil: none
	// position counts from the head; -1 when the entry is not in the chain.
	Position int32
	// stranded: no head leads to it, and no entry skips it.
	Stranded bool
}

// ParsedBundle is what all entries of one bundle share.
type ParsedBundle struct {
	Facts
	Name string
	Pkg  string
	// version is 0.0.0 without hasVersion.
	Version     semver.Version
	HasVersion  bool
	VersionText string // the version as written
	Image       string
	Objects     []olmcore.Object
}

// Packages returns the names of the catalog's packages, sorted.
func (c *Catalog) Packages() (names []string) {
	if c == nil {
		return nil
	}
	for _, p := range c.Sorted {
		names = append(names, p.Name)
	}
	return names
}

// IsEmpty reports whether there is no package.
func (c *Catalog) IsEmpty() bool { return c == nil || len(c.Sorted) == 0 }

// Channels returns the names of a package's channels, the default channel first, then by name; nil when there is no
// such package.
func (c *Catalog) Channels(pkg string) []string { return c.packageOf(pkg).ChannelNames() }

// Chain returns the names of a channel's bundles in the order of preference: the head, then what it replaces, and so
// on, without the skipped ones. It is nil when there is no such channel or its upgrade graph has no such order.
func (c *Catalog) Chain(pkg, channel string) (names []string) {
	if ch := c.packageOf(pkg).Channel(channel); ch != nil {
		for _, e := range ch.Chain {
			names = append(names, e.Name)
		}
	}
	return names
}

// Deprecations returns what the catalog says about a package, as written.
func (c *Catalog) Deprecations(pkg string) []Deprecation {
	return slices.Clone(c.packageOf(pkg).deprecations)
}

// packageOf returns a package, an empty one when there is none.
func (c *Catalog) packageOf(name string) *PackageIndex {
	if c == nil || c.ByName[name] == nil {
		return &PackageIndex{}
	}
	return c.ByName[name]
}

// ChannelNames returns the names of the channels, the default first.
func (p *PackageIndex) ChannelNames() (names []string) {
	for _, ch := range p.Channels {
		names = append(names, ch.Name)
	}
	return names
}

// Channel returns a channel by its name, nil when there is none.
func (p *PackageIndex) Channel(name string) *ChannelIndex {
	i := slices.IndexFunc(p.Channels, func(ch *ChannelIndex) bool { return ch.Name == name })
	if i < 0 {
		return nil
	}
	return p.Channels[i]
}

func (c *Catalog) index() {
	slices.SortFunc(c.Sorted, func(a, b *PackageIndex) int { return cmp.Compare(a.Name, b.Name) })
	var channels []*ChannelIndex
	for _, p := range c.Sorted {
		channels = append(channels, p.Channels...)
	}
	slices.SortStableFunc(channels, compareChannels)
	for i, ch := range channels {
		if ch.Malformed != "" {
			c.Malformed = append(c.Malformed, ch)
		}
		ch.rank = int32(i)
		c.All = append(c.All, ch.Chain...)
		for _, e := range ch.Chain {
			c.indexEntry(e)
		}
	}
}

func (c *Catalog) indexEntry(e *Entry) {
	for _, g := range e.Provides {
		c.ByAPI[g] = append(c.ByAPI[g], e)
	}
	for _, label := range e.Labels {
		c.ByLabel[label] = append(c.ByLabel[label], e)
	}
	c.ByPackage[e.Pkg] = append(c.ByPackage[e.Pkg], e)
	for i := range e.Packages {
		if name := e.Packages[i].Name; name != e.Pkg {
			c.ByPackage[name] = append(c.ByPackage[name], e)
		}
	}
}

// compareChannels is the order of preference of channels: default channels first, then by package and name.
func compareChannels(a, b *ChannelIndex) int {
	if a.isDefault != b.isDefault {
		if a.isDefault {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Pkg.Name, b.Pkg.Name), cmp.Compare(a.Name, b.Name))
}

// CompareEntries is the order of preference of two entries of one catalog.
func CompareEntries(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Channel.rank, b.Channel.rank), cmp.Compare(a.Position, b.Position))
}
