// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// DefaultMaxBytes is the default of Describer.MaxBytes.
const DefaultMaxBytes = 64 << 20

// Describer describes the packages of a catalog one after the other, and the heads of each package one after the other.
// A caller needs only one head of a large catalog in memory. The zero value is ready to use.
type Describer struct {
	// MaxBytes limits the memory of the result. 0 means DefaultMaxBytes, and a negative value means no memory at all. If a
	// head exceeds the limit, it is shown without a description. If a package exceeds the limit, it is not shown. A
	// Diagnostic reports each such head or package.
	MaxBytes int

	kept int
}

// Kept returns the estimated memory of the result so far, in bytes.
func (d *Describer) Kept() int { return d.kept }

func (d *Describer) most() int { return max(0, cmp.Or(d.MaxBytes, DefaultMaxBytes)) }

// Head is a bundle to describe. Channel is the first channel with this head.
type Head struct{ Channel, Name string }

// Pending is a package whose heads are being described.
type Pending struct {
	pkg
	of          *Describer
	index       *resolution.Catalog
	heads       []Head
	isHead      map[string]bool
	described   map[string]*description
	taken       int
	diagnostics []olmcore.Diagnostic
}

// Begin starts the description of package p. The bundles of p must have the properties with their versions, but do not
// need the properties with their descriptions. Do not change p or the objects that p references before calling End.
func (d *Describer) Begin(p resolution.Package) *Pending {
	index, problems := resolution.Build([]resolution.Package{p})
	out := d.pending(newPackage(&p), index)
	out.diagnostics = problems
	return out
}

func (d *Describer) pending(p pkg, index *resolution.Catalog) *Pending {
	out := &Pending{pkg: p, of: d, index: index, isHead: map[string]bool{}, described: map[string]*description{}}
	for _, channel := range index.Channels(p.Name) {
		if head := p.head(index, channel); head != nil && !out.isHead[head.Name] {
			out.isHead[head.Name] = true
			out.heads = append(out.heads, Head{Channel: channel, Name: head.Name})
		}
	}
	return out
}

// Heads returns the heads of the package's channels without duplicates. The head of the default channel comes first.
func (p *Pending) Heads() []Head { return p.heads }

// Describe adds the description of a head. It keeps no reference to head, and it ignores bundles that are not heads.
func (p *Pending) Describe(head resolution.Bundle) {
	if p.isHead[head.Name] && p.described[head.Name] == nil {
		p.described[head.Name] = p.describe(&head)
	}
}

// End returns the PackageManifest of the package, or nil if the package has no content to show. A head that was not
// passed to Describe has only its version. The Diagnostics are those of resolution.Build for the package, and those for
// content that cannot be shown.
func (p *Pending) End() (*PackageManifest, []olmcore.Diagnostic) {
	m := p.manifest()
	if m != nil && !p.take(footprint(m)) {
		p.report(
			olmcore.Warning,
			ReasonTooLarge,
			pathOf(p.Name),
			"package %s is not shown: what is shown of the catalog has %d bytes of memory, and takes them",
			p.Name,
			p.of.most(),
		)
		m = nil
	}
	if m == nil {
		p.force(-p.taken)
	}
	sortDiagnostics(p.diagnostics)
	return m, p.diagnostics
}

func (p *Pending) take(size int) bool {
	if p.of.kept+size > p.of.most() {
		return false
	}
	p.force(size)
	return true
}

func (p *Pending) force(size int) {
	p.taken += size
	p.of.kept += size
}

func (p *Pending) report(severity olmcore.Severity, reason, path, format string, args ...any) {
	p.diagnostics = append(
		p.diagnostics,
		olmcore.Diagnostic{Severity: severity, Reason: reason, Path: path, Message: model.Cut(fmt.Sprintf(format, args...), model.MaxDiagnostic)},
	)
}

// manifest returns what is shown of the package, nil for nothing.
func (p *Pending) manifest() *PackageManifest {
	m := &PackageManifest{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "PackageManifest"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Status:     PackageManifestStatus{PackageName: p.Name},
	}
	deprecated := deprecationsOf(p.index.Deprecations(p.Name))
	m.Status.Deprecation = deprecated[resolution.Deprecation{}]
	for _, name := range p.index.Channels(p.Name) { // the default channel comes first
		head := p.head(p.index, name)
		if head == nil {
			p.report(olmcore.Warning, ReasonNoHead, pathOf(p.Name)+fmt.Sprintf(".channels[%q]", name),
				"channel %q of package %s is not shown: nothing can be installed from it", name, p.Name)
			continue
		}
		if p.described[head.Name] == nil {
			p.described[head.Name] = p.describe(&resolution.Bundle{Name: head.Name, Bundle: olmcore.Bundle{Properties: versionsOf(head)}})
		}
		described := p.described[head.Name]
		if m.Status.DefaultChannel == "" {
			m.Status.DefaultChannel, m.Status.Provider = name, described.Provider
			m.Labels = platforms(described.labels)
		}
		m.Status.Channels = append(m.Status.Channels, PackageChannel{
			Name: name, CurrentCSV: head.Name, CurrentCSVDesc: &described.CSVDescription,
			Deprecation: deprecated[resolution.Deprecation{Channel: name}], Entries: entries(p.pkg, name, deprecated),
		})
	}
	if len(m.Status.Channels) == 0 {
		p.report(olmcore.Warning, ReasonNoHead, pathOf(p.Name), "package %s is not shown: it has no channel to install from", p.Name)
		return nil
	}
	slices.SortFunc(m.Status.Channels, func(a, b PackageChannel) int { return cmp.Compare(a.Name, b.Name) })
	return m
}

// versionsOf returns the properties of a bundle that say its version.
func versionsOf(b *resolution.Bundle) (list []olmcore.Property) {
	for _, property := range b.Properties {
		if property.Type == resolution.PropertyPackage {
			list = append(list, property)
		}
	}
	return list
}

// footprint is the memory that a package takes beside the descriptions of its heads, with the copies that show it as
// one of a CatalogSource, and in lists.
func footprint(m *PackageManifest) int {
	const labels = 1 << 10
	size := 3*int(reflect.TypeFor[PackageManifest]().Size()) + labels + sizeOf(m.Name)
	for i := range m.Status.Channels {
		channel := m.Status.Channels[i]
		channel.CurrentCSVDesc = nil
		size += sizeOf(channel) + int(reflect.TypeFor[PackageChannel]().Size()+reflect.TypeFor[CSVDescription]().Size())
	}
	return size + sizeOf(m.Status.Deprecation) + sizeOf(m.Labels)
}

// sizeOf estimates the memory that a value takes with all that it refers to.
func sizeOf(value any) int {
	v := reflect.ValueOf(value)
	return int(v.Type().Size()) + referred(v)
}

func referred(v reflect.Value) (size int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len() + v.Len()/8 // what is allocated has some sizes only
	case reflect.Slice:
		if size = v.Cap() * int(v.Type().Elem().Size()); v.Type().Elem().Kind() == reflect.Uint8 {
			return size
		}
		for i := range v.Len() {
			size += referred(v.Index(i))
		}
	case reflect.Map:
		if v.Len() == 0 {
			return 0
		}
		slots := 8
		for slots*7/8 < v.Len() {
			slots *= 2
		}
		size = 64 + slots*(1+int(v.Type().Key().Size()+v.Type().Elem().Size()))
		for entries := v.MapRange(); entries.Next(); {
			size += referred(entries.Key()) + referred(entries.Value())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return int(v.Type().Elem().Size()) + referred(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			size += referred(v.Field(i))
		}
	}
	return size
}
