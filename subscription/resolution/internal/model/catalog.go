// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/olmcore"
)

// Catalog contains the indexed content of one catalog. Build creates a Catalog, and Resolve reads it. A Catalog never
// changes, so concurrent calls may share it. Several CatalogSources may use the same Catalog.
type Catalog struct {
	ByName map[string]*PackageIndex
	// Sorted contains the packages, sorted by name.
	Sorted []*PackageIndex
	// ByAPI maps an API to the entries that provide it. ByLabel and ByPackage do the same for labels and packages. All
	// contains all entries that may meet a requirement. Each list is sorted by preference:
	//   - entries of default channels come first
	//   - then by the names of the package and the channel
	//   - then from the head of the channel down
	ByAPI     map[API][]*Entry
	ByLabel   map[string][]*Entry
	ByPackage map[string][]*Entry
	All       []*Entry
	// Malformed contains the channels whose upgrade graph defines no order. Invalid is the number of bundles that must
	// not be selected.
	Malformed []*ChannelIndex
	Invalid   int
	// HasRules means that at least one bundle has a CEL rule.
	HasRules bool
	digest   string
}

// PackageIndex is one package of a Catalog.
type PackageIndex struct {
	Name string
	// Channels contains the default channel first, then the others by name.
	Channels []*ChannelIndex
	// Chains contains the entries of the Chain of each channel, in the order of Channels. These entries are the candidates
	// of a Subscription that names no channel.
	Chains       []*Entry
	deprecations []Deprecation
	// Digest is the digest of a catalog that contains only this package.
	Digest string
}

// ChannelIndex is one channel of a package.
type ChannelIndex struct {
	Pkg       *PackageIndex
	Name      string
	isDefault bool
	ByName    map[string]*Entry
	// Chain contains the entries of the channel from the head down, without skipped entries. If the upgrade graph defines
	// no order, Chain is nil and Malformed contains the reason.
	Chain     []*Entry
	Malformed string
	// rank is the channel's place in the order of byAPI.
	rank int32
}

// Entry is a candidate of a resolution: one bundle in one channel, or an existing ClusterServiceVersion. Entries are
// compared by pointer, not by content.
type Entry struct {
	*ParsedBundle
	// Channel is the channel of the entry. It is nil for an existing ClusterServiceVersion.
	Channel  *ChannelIndex
	Replaces string
	Skips    []string
	// Skip is the skipRange of the entry, or nil if it has none.
	Skip *VersionRange
	// Position is the index of the entry in the Chain of its channel. The head has the Position 0. If the entry is not in
	// the Chain, Position is -1.
	Position int32
	// Stranded means that no path leads from the head of the channel to the entry, and that no entry skips it.
	Stranded bool
}

// ParsedBundle contains the data that all entries of one bundle share.
type ParsedBundle struct {
	Facts
	Name string
	Pkg  string
	// Version is the version of the bundle. It is 0.0.0 if HasVersion is false.
	Version    semver.Version
	HasVersion bool
	// VersionText is the version as the author wrote it.
	VersionText string
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

// IsEmpty reports whether the catalog is nil or has no packages.
func (c *Catalog) IsEmpty() bool { return c == nil || len(c.Sorted) == 0 }

// Channels returns the names of a package's channels: the default channel first, then the others by name. It returns
// nil if the package does not exist.
func (c *Catalog) Channels(pkg string) []string { return c.packageOf(pkg).ChannelNames() }

// Chain returns the names of a channel's bundles in order of preference. The head is first, then the bundle that it
// replaces, and so on. Skipped bundles are left out. Chain returns nil if the channel does not exist or its upgrade
// graph defines no order.
func (c *Catalog) Chain(pkg, channel string) (names []string) {
	if ch := c.packageOf(pkg).Channel(channel); ch != nil {
		for _, e := range ch.Chain {
			names = append(names, e.Name)
		}
	}
	return names
}

// Deprecations returns the deprecation messages of a package, its channels and its bundles, as the author wrote them.
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

// ChannelNames returns the names of the channels, the default channel first.
func (p *PackageIndex) ChannelNames() (names []string) {
	for _, ch := range p.Channels {
		names = append(names, ch.Name)
	}
	return names
}

// Channel returns the channel with the given name, or nil if it does not exist.
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

// CompareEntries compares two entries of one catalog by preference. It returns a negative number if a is preferred.
func CompareEntries(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Channel.rank, b.Channel.rank), cmp.Compare(a.Position, b.Position))
}
