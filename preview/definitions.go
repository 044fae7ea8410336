// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// Definition is a CustomResourceDefinition that comes, changes or goes.
type Definition struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	// VersionsAdded and VersionsRemoved are those that are served from then on, and not any more, sorted.
	VersionsAdded   []string `json:"versionsAdded"`
	VersionsRemoved []string `json:"versionsRemoved"`
	// StorageBefore and StorageAfter are the versions in which custom resources are stored; empty for none.
	StorageBefore string `json:"storageBefore,omitempty"`
	StorageAfter  string `json:"storageAfter,omitempty"`
	// Breaking are the fields in which it takes something away from who used it, at most MaxFields: see
	// installplan.Narrowings.
	Breaking []string `json:"breaking"`
	// Judged: custom resources were held against new schemas, where it has any. Refused are those that are not valid any
	// more.
	Judged  bool      `json:"judged"`
	Refused []Refused `json:"refused"`

	// back are the fields in which the way back takes something away; noReturn: it does not read what is stored by then.
	back     []string
	noReturn bool
}

// Refused is a custom resource that a new schema does not take.
type Refused struct {
	Version   string `json:"version"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Why       string `json:"why"`
}

func takeDefinition(p *Preview, of pair) {
	before, after := typed[apiextensionsv1.CustomResourceDefinition](of)
	if before == nil && after == nil || before != nil && after != nil && equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return
	}
	p.CustomResourceDefinitions = append(p.CustomResourceDefinitions, definitionOf(of.key.Name, before, after))
}

// definitionOf tells what becomes of a definition; one of both may be nil.
func definitionOf(name string, before, after *definition) Definition {
	was, is := served(before), served(after)
	d := Definition{
		Name: name, Change: Changed, Breaking: []string{}, Refused: []Refused{}, StorageBefore: stored(before), StorageAfter: stored(after),
		VersionsAdded: append([]string{}, without(is, was)...), VersionsRemoved: append([]string{}, without(was, is)...),
	}
	switch {
	case before == nil:
		d.Change = Created
	case after == nil:
		d.Change = Deleted
		d.Breaking = append(d.Breaking, "all custom resources are deleted with it")
	default:
		d.Breaking = append(d.Breaking, narrowings(before, after)...)
		d.back = narrowings(after, before)
		d.noReturn = !has(before, d.StorageAfter)
	}
	return d
}

type definition = apiextensionsv1.CustomResourceDefinition

// has reports whether a definition has a version of a name, served or not.
func has(crd *definition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

func narrowings(from, to *definition) (fields []string) {
	for field := range installplan.Narrowings(from, to) {
		if fields = append(fields, field); len(fields) == MaxFields {
			break
		}
	}
	return fields
}

func served(crd *definition) (names []string) {
	if crd == nil {
		return nil
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

func stored(crd *definition) string {
	if crd != nil {
		for _, v := range crd.Spec.Versions {
			if v.Storage {
				return v.Name
			}
		}
	}
	return ""
}

// without returns the names of a list that another one lacks, sorted.
func without(names, others []string) []string {
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
	slices.Sort(rest)
	return rest
}

// judge notes what was found about custom resources, and asks about those that were not judged.
func (p *Preview) judge(verdicts olmcore.Observed[installplan.ResourceVerdict], asked []installplan.SchemaChange) {
	if !verdicts.Complete && len(asked) > 0 {
		p.SchemaChanges = asked
		return
	}
	for i := range p.CustomResourceDefinitions {
		p.CustomResourceDefinitions[i].Judged = true // there is nothing to judge, or it follows
	}
	for _, change := range asked {
		i := slices.IndexFunc(p.CustomResourceDefinitions, func(d Definition) bool { return d.Name == change.Before.Name })
		if i < 0 { // a plan that is refused changes none
			p.CustomResourceDefinitions = append(p.CustomResourceDefinitions, definitionOf(change.Before.Name, change.Before, change.After))
			i = len(p.CustomResourceDefinitions) - 1
		}
		d := &p.CustomResourceDefinitions[i]
		d.Judged = true
		for _, v := range verdicts.Items {
			if v.CustomResourceDefinition == d.Name && len(v.New) > 0 && len(v.Old) == 0 {
				d.Refused = append(d.Refused, Refused{v.Version, v.Namespace, v.Name, strings.Join(v.New, ", ")})
			}
		}
	}
}
