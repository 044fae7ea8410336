// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// These are the reasons of Diagnostics, in addition to those of resolution.Build.
const (
	// ReasonNoHead means that a channel or a package is not shown, because none of its bundles can be installed. Other
	// Diagnostics show the cause.
	ReasonNoHead = "NoHead"
	// ReasonNotDescribed means that the catalog contains neither the ClusterServiceVersion nor the property
	// olm.csv.metadata of a head, so the head has no description. To add them, render the catalog with `opm render`.
	ReasonNotDescribed = "NotDescribed"
	// ReasonUnreadableDescription means that the description of a head is not JSON, or that one of its fields has the
	// wrong type. The other fields are used. Correct the bundle.
	ReasonUnreadableDescription = "UnreadableDescription"
	// ReasonTooLarge means that a description, an icon or a whole package exceeds a size limit and is left out. Reduce its
	// size.
	ReasonTooLarge = "TooLarge"
	// ReasonUnusableIcon means that the data of an icon is not valid base64, or that its media type is not one of
	// SVG, PNG, JPEG, GIF and WebP. The icon is left out. Correct the icon.
	ReasonUnusableIcon = "UnusableIcon"
)

// Heads returns the names of the bundles that Describe describes: for each channel, the first bundle that exists, from
// the head down.
func Heads(list []resolution.Package) map[string]bool {
	heads := map[string]bool{}
	index, _ := resolution.Build(list)
	for i := range list {
		p := newPackage(&list[i])
		for _, channel := range index.Channels(p.Name) {
			if head := p.head(index, channel); head != nil {
				heads[head.Name] = true
			}
		}
	}
	return heads
}

// Describe returns the description of the packages in a catalog. It uses the name, namespace, labels, creation time,
// display name, publisher and priority of source. A nil source has the effect of an empty one. Packages without an
// installable bundle are left out. The Diagnostics are those of resolution.Build, and those for content that cannot be
// shown. Describe modifies neither argument, but the Catalog shares strings with list.
func Describe(source *v1alpha1.CatalogSource, list []resolution.Package) (Catalog, []olmcore.Diagnostic) {
	index, problems := resolution.Build(list)
	byName := map[string]*resolution.Package{}
	for i := range list {
		if p := &list[i]; byName[p.Name] == nil { // of two packages the first counts, as for Build
			byName[p.Name] = p
		}
	}
	var d Describer
	var out Catalog
	for _, name := range index.Packages() {
		p := d.pending(newPackage(byName[name]), index)
		for _, head := range p.heads {
			p.Describe(*p.bundles[head.Name])
		}
		m, said := p.End()
		if problems = append(problems, said...); m != nil {
			out.Packages = append(out.Packages, *m)
		}
	}
	sortDiagnostics(problems)
	return out.WithSource(source), problems
}

func sortDiagnostics(list []olmcore.Diagnostic) {
	slices.SortStableFunc(list, func(x, y olmcore.Diagnostic) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Message, y.Message))
	})
}

// maxSourceLabels and maxSourceText bound what each package gets of its CatalogSource.
const (
	maxSourceLabels = 100
	maxSourceText   = 1 << 10
)

// WithSource returns a copy of the Catalog with the name, namespace, labels, creation time, display name, publisher
// and priority of source. source may be another CatalogSource with the same content, or a new version of the same
// CatalogSource. A nil source has the effect of an empty one. WithSource uses at most 100 labels, and the first KiB of
// display name and publisher. It does not modify c.
func (c Catalog) WithSource(source *v1alpha1.CatalogSource) Catalog {
	if source == nil {
		source = &v1alpha1.CatalogSource{}
	}
	out := Catalog{Source: types.NamespacedName{Namespace: source.Namespace, Name: source.Name}, Priority: source.Spec.Priority}
	out.Packages = slices.Clone(c.Packages)
	for i := range out.Packages {
		m := &out.Packages[i]
		m.Labels = labelsOf(m, source)
		m.Namespace, m.CreationTimestamp = source.Namespace, source.CreationTimestamp
		m.Status.CatalogSource, m.Status.CatalogSourceNamespace = source.Name, source.Namespace
		m.Status.CatalogSourceDisplayName = model.Cut(source.Spec.DisplayName, maxSourceText)
		m.Status.CatalogSourcePublisher = model.Cut(source.Spec.Publisher, maxSourceText)
	}
	return out
}

// labelsOf returns the labels of a package: those of its CatalogSource, and what people select by. A CatalogSource does
// not say where operators run.
func labelsOf(m *PackageManifest, source *v1alpha1.CatalogSource) map[string]string {
	platform := func(key string) bool { return strings.HasPrefix(key, LabelArch) || strings.HasPrefix(key, LabelOS) }
	labels := map[string]string{}
	for _, key := range firstOf(source.Labels) {
		if !platform(key) {
			labels[key] = source.Labels[key]
		}
	}
	for key, value := range m.Labels {
		if platform(key) {
			labels[key] = value
		}
	}
	maps.Copy(labels, map[string]string{
		LabelCatalog: source.Name, LabelCatalogNamespace: source.Namespace,
		LabelProvider: m.Status.Provider.Name, LabelProviderURL: m.Status.Provider.URL,
	})
	return labels
}

// firstOf returns the keys of labels, or the first of them when there are very many.
func firstOf(labels map[string]string) []string {
	if len(labels) <= maxSourceLabels {
		return slices.Collect(maps.Keys(labels))
	}
	return slices.Sorted(maps.Keys(labels))[:maxSourceLabels]
}

// pkg is one package of the content, with its bundles by name.
type pkg struct {
	*resolution.Package
	bundles map[string]*resolution.Bundle
}

func newPackage(p *resolution.Package) pkg {
	bundles := map[string]*resolution.Bundle{}
	for i := range p.Bundles {
		if b := &p.Bundles[i]; bundles[b.Name] == nil {
			bundles[b.Name] = b
		}
	}
	return pkg{p, bundles}
}

// head returns the first existing bundle of a channel, from the head down. It returns nil if no bundle of the channel
// exists.
func (p pkg) head(index *resolution.Catalog, channel string) *resolution.Bundle {
	for _, name := range index.Chain(p.Name, channel) {
		if b := p.bundles[name]; b != nil {
			return b
		}
	}
	return nil
}

func pathOf(name string) string { return fmt.Sprintf("packages[%q]", name) }

// platforms returns the labels for the architectures and operating systems that an operator supports. The default is
// amd64 if no label names an architecture, and linux if no label names an operating system.
func platforms(labels map[string]string) map[string]string {
	out := map[string]string{}
	for prefix, usual := range map[string]string{LabelArch: "amd64", LabelOS: "linux"} {
		said := false
		for key, value := range labels {
			if strings.HasPrefix(key, prefix) {
				out[key], said = value, true
			}
		}
		if !said {
			out[prefix+usual] = "supported"
		}
	}
	return out
}

// deprecationsOf returns what is said of a package (the zero key), of its channels and of its versions.
func deprecationsOf(list []resolution.Deprecation) map[resolution.Deprecation]*Deprecation {
	said := map[resolution.Deprecation]*Deprecation{}
	for _, about := range list {
		message := about.Message
		about.Message = ""
		said[about] = &Deprecation{Message: message}
	}
	return said
}

// entries returns the versions in a channel that exist, the newest first.
func entries(p pkg, channel string, deprecated map[resolution.Deprecation]*Deprecation) (list []ChannelEntry) {
	i := slices.IndexFunc(p.Channels, func(ch resolution.Channel) bool { return ch.Name == channel })
	versions := map[string]semver.Version{}
	for _, e := range p.Channels[i].Entries {
		b := p.bundles[e.Name]
		if _, twice := versions[e.Name]; b == nil || twice {
			continue
		}
		text := versionOf(b, p.Name)
		versions[e.Name], _ = semver.ParseTolerant(text)
		list = append(list, ChannelEntry{Name: e.Name, Version: text, Deprecation: deprecated[resolution.Deprecation{Bundle: e.Name}]})
	}
	slices.SortFunc(list, func(a, b ChannelEntry) int {
		return cmp.Or(versions[b.Name].Compare(versions[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	return list
}
