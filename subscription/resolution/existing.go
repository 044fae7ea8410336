// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// existing is a ClusterServiceVersion of the namespace that is no copy.
type existing struct {
	object *v1alpha1.ClusterServiceVersion
	entry  *entry
	choice choice
	// owners are the Subscriptions whose status.installedCSV names it.
	owners []*subscription
	// leftOut: it takes no part, being deleted or on its way out of an upgrade.
	leftOut bool
	// kept: it must stay because its Subscription failed.
	kept *subscription
	// error is what stops OLM.
	error string
}

func (e *existing) deleting() bool { return e.object.DeletionTimestamp != nil }

// freestanding reports whether it must be in every solution.
func (e *existing) freestanding() bool { return !e.leftOut && (len(e.owners) == 0 || e.kept != nil) }

// isCopied reports whether a ClusterServiceVersion is a copy of one in another
// namespace.
//
// Source: operator-framework/api ClusterServiceVersion.IsCopied.
// Differs: the label olm.copiedFrom with the namespace itself is no copy.
func isCopied(c *v1alpha1.ClusterServiceVersion) bool {
	if c.Status.Reason == v1alpha1.CSVReasonCopied {
		return true
	}
	if home, ok := c.Annotations["olm.operatorNamespace"]; ok && home != c.Namespace {
		return true
	}
	home, ok := c.Labels[olmcore.LabelCopiedFrom]
	return ok && home != c.Namespace
}

// csvs collects the existing ClusterServiceVersions, by name, and ties the
// Subscriptions to them.
func (p *problem) csvs() {
	objects := make([]*v1alpha1.ClusterServiceVersion, 0, len(p.in.CSVs))
	for i, c := range p.in.CSVs {
		switch {
		case c == nil:
			p.report(olmcore.Warning, ReasonSkippedObject, olmcore.Ref{}, fmt.Sprintf("CSVs[%d]", i), "a ClusterServiceVersion without content is left out")
		case c.Namespace != p.in.Namespace:
			p.report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(c), "", "ClusterServiceVersion %s/%s is of another namespace and left out", c.Namespace, c.Name)
		case !isCopied(c):
			objects = append(objects, c)
		}
	}
	slices.SortStableFunc(objects, func(a, b *v1alpha1.ClusterServiceVersion) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	p.byName = make(map[string]*existing, len(objects))
	store := make([]existing, len(objects))
	p.existing = make([]*existing, 0, len(objects))
	for i, c := range objects {
		if p.byName[c.Name] != nil {
			p.report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(c), "", "ClusterServiceVersion %s is there twice; the first counts", c.Name)
			continue
		}
		store[i] = existing{object: c, leftOut: c.DeletionTimestamp != nil}
		p.byName[c.Name] = &store[i]
		p.existing = append(p.existing, &store[i])
	}
	for _, s := range p.subs {
		installed := s.object.Status.InstalledCSV
		if installed == "" {
			continue
		}
		c := p.byName[installed]
		if c == nil || c.deleting() {
			p.report(olmcore.Info, ReasonInstalledCSVMissing, olmcore.RefOf(s.object), "status.installedCSV", "ClusterServiceVersion %s does not exist, is a copy or is being deleted", installed)
			continue
		}
		s.current = c
		c.owners = append(c.owners, s)
	}
}

// readCSVs turns the existing ClusterServiceVersions into entries.
func (p *problem) readCSVs() {
	if len(p.existing) == 0 {
		return
	}
	parser := newParser(false)
	entries, bundles := make([]entry, len(p.existing)), make([]bundle, len(p.existing))
	for i, c := range p.existing {
		c.entry = &entries[i]
		*c.entry = entry{bundle: &bundles[i]}
		p.readCSV(parser, c)
	}
}

func (p *problem) readCSV(parser *parser, c *existing) {
	b := c.entry.bundle
	b.name = c.object.Name
	b.version, b.hasVersion = c.object.Spec.Version.Version, true
	unreadable := func(problem string) {
		p.report(olmcore.Warning, ReasonUnreadableCSV, p.csvRef(b.name), "", "ClusterServiceVersion %s: %s", b.name, problem)
	}
	text, annotated := c.object.Annotations[propertiesAnnotation]
	switch twin := p.publishedAs(c); {
	case !annotated:
		b.facts = p.derived(parser, c, unreadable)
	case twin != nil && projects(text, twin.properties):
		b.facts = twin.facts
	default:
		properties, err := parseAnnotation(text)
		if err != nil {
			unreadable(err.Error())
			c.error = fmt.Sprintf("failed to retrieve properties of csv %q: %v", b.name, err)
		}
		b.facts = parser.facts(properties, unreadable)
	}
	if c.error == "" {
		c.error = crdNameError(c.object)
	}
	if b.invalid != "" {
		unreadable(b.invalid)
		c.error = cmp.Or(c.error, b.invalid)
		b.invalid = "" // it exists already: what is readable counts
	}
	p.dropUncompiled(b, unreadable)
	if n := len(b.packages); n > 0 {
		b.pkg = b.packages[n-1].name
	}
}

// dropUncompiled removes the requirements that nobody can evaluate.
func (p *problem) dropUncompiled(b *bundle, unreadable func(string)) {
	for _, q := range b.requirements {
		problem := p.compile(q.predicate)
		if problem == "" {
			continue
		}
		unreadable(problem)
		b.requirements = slices.DeleteFunc(slices.Clone(b.requirements), func(q *requirement) bool { return p.compile(q.predicate) != "" })
		return
	}
}

// publishedAs returns the catalog's bundle of an owned ClusterServiceVersion.
// Its parsed properties can be shared when the annotation says the same.
func (p *problem) publishedAs(c *existing) *bundle {
	for _, s := range c.owners {
		spec := s.object.Spec
		index, _ := p.sourceOf(types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource})
		if index == noSource {
			continue
		}
		pkg := p.sources[index].content.packages[spec.Package]
		if pkg == nil {
			continue
		}
		for _, ch := range pkg.channels {
			if e := ch.byName[c.object.Name]; e != nil && e.invalid == "" {
				return e.bundle
			}
		}
	}
	return nil
}

// derived is what a ClusterServiceVersion without the annotation says of itself.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, source_csvs.go.
func (p *problem) derived(parser *parser, c *existing, unreadable func(string)) facts {
	spec := &c.object.Spec
	var provided, required []gvk
	for _, d := range spec.CustomResourceDefinitions.Owned {
		provided = appendCRD(provided, d, unreadable)
	}
	for _, d := range spec.APIServiceDefinitions.Owned {
		provided = append(provided, gvk{d.Group, d.Version, d.Kind})
	}
	for _, d := range spec.CustomResourceDefinitions.Required {
		required = appendCRD(required, d, unreadable)
	}
	for _, d := range spec.APIServiceDefinitions.Required {
		required = append(required, gvk{d.Group, d.Version, d.Kind})
	}
	var f facts
	for _, g := range provided {
		if !slices.Contains(f.provides, g) {
			f.provides = append(f.provides, g)
		}
	}
	slices.SortFunc(required, gvk.compare)
	for _, g := range slices.Compact(required) {
		f.requirements = append(f.requirements, parser.apiRequirement(g))
	}
	if name := followed(c.owners); name != "" {
		fact := packageFact{name: name}
		if version := spec.Version.Version; !version.Equals(semver.Version{}) {
			fact.version, fact.strict = version, true
		}
		f.packages = []packageFact{fact}
	}
	if p.in.CEL != nil {
		f.properties = f.spellOut()
	}
	return f
}

// followed returns the package that all owners follow, "" when they differ.
func followed(owners []*subscription) string {
	name := ""
	for _, s := range owners {
		pkg := s.object.Spec.Package
		if pkg != "" && name != "" && pkg != name {
			return ""
		}
		name = cmp.Or(name, pkg)
	}
	return name
}

func appendCRD(list []gvk, d v1alpha1.CRDDescription, unreadable func(string)) []gvk {
	_, group, ok := strings.Cut(d.Name, ".")
	if !ok {
		unreadable("error parsing crd name: " + d.Name)
		return list
	}
	return append(list, gvk{group, d.Version, d.Kind})
}

// crdNameError is what OLM says about a CRD name that has no group.
func crdNameError(c *v1alpha1.ClusterServiceVersion) string {
	for _, list := range [...][]v1alpha1.CRDDescription{c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required} {
		for _, d := range list {
			if !strings.Contains(d.Name, ".") {
				return "error parsing crd name: " + d.Name
			}
		}
	}
	return ""
}
