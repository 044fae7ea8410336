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
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// Diagnostic reasons, beside those of resolution.Build.
const (
	// ReasonNoHead: a channel, or a package with all its channels, has nothing that could be installed, and is left out.
	// Other Diagnostics of the channel say why.
	ReasonNoHead = "NoHead"
	// ReasonNotDescribed: all that is known of a head is its name, its version and its images: the catalog has neither its
	// ClusterServiceVersion nor olm.csv.metadata, as `opm render` writes it.
	ReasonNotDescribed = "NotDescribed"
	// ReasonUnreadableDescription: what describes a head is no JSON, or a field of it has another type; the other fields
	// are used. Repair the bundle.
	ReasonUnreadableDescription = "UnreadableDescription"
	// ReasonTooLarge: a description, an icon, or all of a catalog is larger than people could want, and is left out.
	ReasonTooLarge = "TooLarge"
	// ReasonUnusableIcon: an icon's data is no base64, or its media type is none of MediaTypes; it is left out.
	ReasonUnusableIcon = "UnusableIcon"
)

// Heads returns the names of the bundles that Describe describes: of each channel the first that exists, from the head
// down.
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

// Describe returns what a catalog has to offer. Of the CatalogSource its name, labels, creation time, display name,
// publisher and priority count; nil is one without a name. Packages of which nothing can be installed are left out. The
// Diagnostics are those of resolution.Build, and what cannot be shown, sorted by Path. Neither argument is changed; the
// answer shares texts with list.
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
	return out.Of(source), problems
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

// Of returns the same packages as those of another CatalogSource, or of one that has changed: its name, labels,
// creation time, display name, publisher and priority are new; nil is one without a name. Of labels the first 100 are
// taken, of long names and publishers the first KiB. The receiver is not changed.
func (c Catalog) Of(source *v1alpha1.CatalogSource) Catalog {
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
		m.Status.CatalogSourceDisplayName = content.Cut(source.Spec.DisplayName, maxSourceText)
		m.Status.CatalogSourcePublisher = content.Cut(source.Spec.Publisher, maxSourceText)
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

// head returns the first bundle that exists, from the head of a channel down; nil when there is none.
func (p pkg) head(index *resolution.Catalog, channel string) *resolution.Bundle {
	for _, name := range index.Chain(p.Name, channel) {
		if b := p.bundles[name]; b != nil {
			return b
		}
	}
	return nil
}

func pathOf(name string) string { return fmt.Sprintf("packages[%q]", name) }

// platforms returns the labels that say where an operator runs. One that does not say runs where all did once.
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
