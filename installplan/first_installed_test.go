// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

const firstInstalledBy = "olmcore/first-installed-by"

// installers contains namespaces that install a definition, with the versions that exist in each.
type installers struct {
	definition *definition
	versions   map[string]*v1alpha1.ClusterServiceVersion // by namespace/name
}

// create adds a version to a namespace.
func (w *installers) create(namespace, name string) {
	w.versions[namespace+"/"+name] = CSV(name, versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = namespace }))
}

// reconcile runs one round of a plan of a version and applies what it writes to the definition.
func (w *installers) reconcile(t require.TestingT, namespace, name string, change ...func(*definition)) (wrote bool) {
	s := definitionStep(thing(change...))
	s.Resolving = name
	p := Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second), func(p *v1alpha1.InstallPlan) { p.Namespace = namespace })
	r, err := reconcileResult(input(p, func(in *installplan.Input) {
		g := Group()
		g.Namespace = namespace
		in.OperatorGroups = olmcore.Found(g)
		for _, v := range w.versions {
			if v.Namespace == namespace {
				in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, v)
			} else {
				in.Alongside.Items = append(in.Alongside.Items, v)
			}
		}
		if w.definition != nil {
			in.CustomResourceDefinitions = olmcore.Found(w.definition)
		}
	}))
	require.NoError(t, err)
	for _, action := range r.Actions {
		switch a := action.(type) {
		case olmcore.Create:
			w.definition, wrote = Installed(a.Object.(*definition), true), true
		case olmcore.Update:
			w.definition, wrote = a.After.(*definition), true
		}
	}
	return wrote
}

// recorded returns the namespaces that the definition records, and those of versions that exist.
func (w *installers) recorded() (all, live map[string]bool) {
	all, live = map[string]bool{}, map[string]bool{}
	if w.definition == nil {
		return all, live
	}
	for key, value := range w.definition.Annotations {
		if strings.HasPrefix(key, alongside) {
			namespace, _, _ := strings.Cut(value, "/")
			all[namespace] = true
			live[namespace] = live[namespace] || w.versions[value] != nil
		}
	}
	return all, live
}

// TestDefinitionNamesItsFirstNamespace checks that a later namespace with the same definition does not become the first
// one, even if plans change the definition. Plans of one namespace name none.
func TestDefinitionNamesItsFirstNamespace(t *testing.T) {
	w := installers{versions: map[string]*v1alpha1.ClusterServiceVersion{}}
	more := func(name string) func(*definition) {
		return specOf(func(s *props) { s.Properties[name] = props{Type: "string"} })
	}
	for i, round := range []struct {
		namespace, version string
		change             []func(*definition)
		want               string
	}{
		{namespace: "victim", version: "a.v1"},
		{namespace: "victim", version: "a.v2"},
		{namespace: "evil", version: "b.v1", want: "victim"},
		{namespace: "evil", version: "b.v2", change: []func(*definition){more("one")}, want: "victim"},
		{namespace: "other", version: "a.v9", change: []func(*definition){more("one"), more("two")}, want: "victim"},
		{namespace: "victim", version: "a.v3", change: []func(*definition){more("one"), more("two"), more("three")}, want: "victim"},
	} {
		w.create(round.namespace, round.version)
		require.True(t, w.reconcile(t, round.namespace, round.version, round.change...), i)
		require.Equal(t, round.want, w.definition.Annotations[firstInstalledBy], i)
		require.False(t, w.reconcile(t, round.namespace, round.version, round.change...), "it is at rest")
	}
}

// TestDefinitionIsNotWrittenForItsFirstNamespaceAlone checks that a definition is not written only to correct, add or
// remove the annotation.
func TestDefinitionIsNotWrittenForItsFirstNamespaceAlone(t *testing.T) {
	for _, named := range []string{"", "ops", "there", "third"} {
		for _, change := range [][]func(*definition){nil, {specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} })}} {
			w := installers{versions: map[string]*v1alpha1.ClusterServiceVersion{}}
			w.create("there", "b.v1")
			w.create(NS, "a.v1")
			w.reconcile(t, "there", "b.v1")
			w.reconcile(t, NS, "a.v1", change...)
			delete(w.definition.Annotations, firstInstalledBy)
			if named != "" {
				w.definition.Annotations[firstInstalledBy] = named
			}
			require.False(t, w.reconcile(t, NS, "a.v1", change...), named)
			delete(w.definition.Annotations, "olmcore/step-hash") // as OLM leaves it
			require.False(t, w.reconcile(t, NS, "a.v1", change...), named)
			require.False(t, w.reconcile(t, "there", "b.v1", change...), named)
		}
	}
}

// soleNamespace returns the only namespace of live versions that the definition records, "" if there are none or
// several.
func (w *installers) soleNamespace() (sole string) {
	_, live := w.recorded()
	for namespace, is := range live {
		switch {
		case is && sole != "":
			return ""
		case is:
			sole = namespace
		}
	}
	return sole
}

// TestFirstNamespaceOfADefinitionDoesNotChange checks plans of several namespaces and deletions in any order. The
// annotation names the only namespace that was recorded before another one was added, and no plan changes it
// afterwards.
func TestFirstNamespaceOfADefinitionDoesNotChange(t *testing.T) {
	named := 0
	rapid.Check(t, func(t *rapid.T) {
		w := installers{versions: map[string]*v1alpha1.ClusterServiceVersion{}}
		fields, first := 0, ""
		more := func(d *definition) {
			for i := range fields {
				specOf(func(s *props) { s.Properties[fmt.Sprint("field", i)] = props{Type: "string"} })(d)
			}
		}
		version := func(t *rapid.T) (namespace, name string) {
			draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
			return draw("namespace", "one", "two", "three"), draw("package", "a", "b") + draw("version", ".v1", ".v2", ".v3")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add a field": func(*rapid.T) { fields++ },
			"install": func(t *rapid.T) {
				namespace, name := version(t)
				later := rapid.Bool().Draw(t, "the version is created after the definition is written")
				if !later {
					w.create(namespace, name)
				}
				sole := w.soleNamespace()
				wrote := w.reconcile(t, namespace, name, more)
				w.create(namespace, name)
				if !wrote {
					return
				}
				if first == "" && sole != namespace {
					first = sole
				}
				require.Equal(t, first, w.definition.Annotations[firstInstalledBy])
				if first != "" {
					named++
				}
			},
			"delete": func(t *rapid.T) {
				namespace, name := version(t)
				delete(w.versions, namespace+"/"+name)
			},
		})
	})
	require.NotZero(t, named)
}
