// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// CSV contains an existing ClusterServiceVersion of the namespace. Copied ClusterServiceVersions are left out.
type CSV struct {
	Object *v1alpha1.ClusterServiceVersion
	Entry  *Entry
	// Choice is the requirement that the ClusterServiceVersion remains.
	Choice Choice
	// Owners contains the Subscriptions whose status.installedCSV names the ClusterServiceVersion.
	Owners []*Subscription
	// LeftOut means that the ClusterServiceVersion is not part of the problem. The ClusterServiceVersion is being deleted,
	// is being replaced in an upgrade, or is being installed again.
	LeftOut bool
	// Error describes the problem of an invalid ClusterServiceVersion for which OLM stops the resolution. It is empty if
	// there is no such problem.
	Error string
}

// Deleting reports whether the ClusterServiceVersion is being deleted.
func (e *CSV) Deleting() bool { return e.Object.DeletionTimestamp != nil }

// isCopied reports whether a ClusterServiceVersion is a copy of one in another namespace.
//
// Source: operator-framework/api ClusterServiceVersion.IsCopied.
// Differs: the label olm.copiedFrom with the namespace itself is no copy.
func isCopied(c *v1alpha1.ClusterServiceVersion) bool {
	if c.Status.Reason == v1alpha1.CSVReasonCopied {
		return true
	}
	home, ok := c.Annotations["olm.operatorNamespace"]
	if ok && home != c.Namespace {
		return true
	}
	home, ok = c.Labels[olmcore.LabelCopiedFrom]
	return ok && home != c.Namespace
}

// readObjects collects the existing ClusterServiceVersions, by name, and ties the Subscriptions to them.
func readObjects(p *Problem) {
	objects := make([]*v1alpha1.ClusterServiceVersion, 0, len(p.In.CSVs))
	for i, c := range p.In.CSVs {
		switch {
		case c == nil:
			p.Report(olmcore.Warning, ReasonSkippedObject, olmcore.Ref{}, fmt.Sprintf("CSVs[%d]", i),
				"a ClusterServiceVersion without content is left out")
		case c.Namespace != p.In.Namespace:
			p.Report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(c), "",
				"ClusterServiceVersion %s/%s is of another namespace and left out", c.Namespace, c.Name)
		case !isCopied(c):
			objects = append(objects, c)
		}
	}
	slices.SortStableFunc(objects, func(a, b *v1alpha1.ClusterServiceVersion) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	p.ByName = make(map[string]*CSV, len(objects))
	store := make([]CSV, len(objects))
	p.Existing = make([]*CSV, 0, len(objects))
	for i, c := range objects {
		if p.ByName[c.Name] != nil {
			p.Report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(c), "", "ClusterServiceVersion %s is there twice; the first counts", c.Name)
			continue
		}
		store[i] = CSV{Object: c, LeftOut: c.DeletionTimestamp != nil}
		p.ByName[c.Name] = &store[i]
		p.Existing = append(p.Existing, &store[i])
	}
	for _, s := range p.Subs {
		installed := s.Object.Status.InstalledCSV
		if installed == "" {
			continue
		}
		c := p.ByName[installed]
		if c == nil || c.Deleting() {
			p.Report(olmcore.Info, ReasonInstalledCSVMissing, olmcore.RefOf(s.Object), "status.installedCSV",
				"ClusterServiceVersion %s does not exist, is a copy or is being deleted", installed)
			continue
		}
		s.Current = c
		c.Owners = append(c.Owners, s)
	}
}

// readCSVs turns the existing ClusterServiceVersions into entries.
func readCSVs(p *Problem) {
	if len(p.Existing) == 0 {
		return
	}
	parser := NewParser()
	entries, bundles := make([]Entry, len(p.Existing)), make([]ParsedBundle, len(p.Existing))
	offers := make([]Offer, len(p.Existing))
	for i, c := range p.Existing {
		c.Entry = &entries[i]
		c.Choice = Choice{CSV: c, Owner: int32(len(p.Subs) + i), Offer: &offers[i]}
		offers[i].Group = -1
		c.Choice.add(ExistingSource, []*Entry{c.Entry})
		*c.Entry = Entry{ParsedBundle: &bundles[i]}
		readCSV(p, parser, c)
	}
}

func readCSV(p *Problem, parser *Parser, c *CSV) {
	b := c.Entry.ParsedBundle
	b.Name = c.Object.Name
	b.Version, b.HasVersion = c.Object.Spec.Version.Version, true
	unreadable := func(problem string) {
		p.Report(olmcore.Warning, ReasonUnreadableCSV, p.CSVRef(b.Name), "", "ClusterServiceVersion %s: %s", b.Name, problem)
	}
	text, annotated := c.Object.Annotations[olmcore.AnnotationProperties]
	switch twin := publishedAs(p, c); {
	case !annotated:
		b.Facts = parser.Facts(derived(c, unreadable), unreadable)
	case twin != nil && Projects(text, twin.Properties):
		b.Facts = twin.Facts
	default:
		properties, err := ParseAnnotation(text)
		if err != nil {
			unreadable(err.Error())
			c.Error = fmt.Sprintf("failed to retrieve properties of csv %q: %v", b.Name, err)
		}
		b.Facts = parser.Facts(properties, unreadable)
	}
	if c.Error == "" {
		c.Error = crdNameError(c.Object)
	}
	if b.Invalid != "" {
		unreadable(b.Invalid)
		c.Error = cmp.Or(c.Error, b.Invalid)
		b.Invalid = "" // it exists already: what is readable counts
	}
	dropUncompiled(p, c, unreadable)
	if n := len(b.Packages); n > 0 {
		b.Pkg = b.Packages[n-1].Name
	}
}

// dropUncompiled removes the requirements that cannot be evaluated.
func dropUncompiled(p *Problem, c *CSV, unreadable func(string)) {
	b := c.Entry.ParsedBundle
	for _, q := range b.Requirements {
		problem := compile(p, q.Predicate)
		if problem == "" {
			continue
		}
		unreadable(problem)
		if problem != noCompiler {
			c.Error = cmp.Or(c.Error, problem)
		}
		b.Requirements = slices.DeleteFunc(slices.Clone(b.Requirements), func(q *Requirement) bool { return compile(p, q.Predicate) != "" })
		return
	}
}

// publishedAs returns the catalog's bundle of an owned ClusterServiceVersion. Its parsed properties can be shared when
// the annotation says the same.
func publishedAs(p *Problem, c *CSV) *ParsedBundle {
	for _, s := range c.Owners {
		spec := s.Object.Spec
		index := p.sourceOf(spec)
		if index == NoSource {
			continue
		}
		pkg := p.Sources[index].Content.ByName[spec.Package]
		if pkg == nil {
			continue
		}
		for _, ch := range pkg.Channels {
			e := ch.ByName[c.Object.Name]
			if e != nil && e.Invalid == "" {
				return e.ParsedBundle
			}
		}
	}
	return nil
}

// derived is what a ClusterServiceVersion without the annotation says of itself, as properties.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, source_csvs.go.
func derived(c *CSV, unreadable func(string)) (list []olmcore.Property) {
	add := func(kind string, value any) {
		if text, err := json.Marshal(value); err == nil {
			list = append(list, olmcore.Property{Type: kind, Value: text})
		}
	}
	addAPIs := func(kind string, crds []v1alpha1.CRDDescription, services []v1alpha1.APIServiceDescription) {
		var apis []API
		for _, d := range crds {
			if _, group, ok := strings.Cut(d.Name, "."); ok {
				apis = append(apis, API{Group: group, Version: d.Version, Kind: d.Kind})
			} else {
				unreadable("error parsing crd name: " + d.Name)
			}
		}
		for _, d := range services {
			apis = append(apis, API{Group: d.Group, Version: d.Version, Kind: d.Kind})
		}
		slices.SortFunc(apis, API.Compare)
		for _, api := range slices.Compact(apis) {
			add(kind, api)
		}
	}
	spec := &c.Object.Spec
	addAPIs(PropertyGVK, spec.CustomResourceDefinitions.Owned, spec.APIServiceDefinitions.Owned)
	addAPIs(PropertyGVKRequired, spec.CustomResourceDefinitions.Required, spec.APIServiceDefinitions.Required)
	if name := followed(c.Owners); name != "" {
		version := ""
		if v := spec.Version.Version; !v.Equals(semver.Version{}) {
			version = v.String()
		}
		add(PropertyPackage, map[string]string{"packageName": name, "version": version})
	}
	return list
}

// followed returns the package that all owners follow, "" when they differ.
func followed(owners []*Subscription) string {
	name := ""
	for _, s := range owners {
		pkg := s.Object.Spec.Package
		if pkg != "" && name != "" && pkg != name {
			return ""
		}
		name = cmp.Or(name, pkg)
	}
	return name
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
