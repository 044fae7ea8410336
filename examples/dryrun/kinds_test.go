// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// spy notes the kinds that are read.
type spy struct {
	olmcore.Reader
	kinds map[schema.GroupVersionKind]bool
}

func (s spy) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	s.kinds[gvk] = true
	return s.Reader.Get(ctx, gvk, namespace, name)
}

func (s spy) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	s.kinds[gvk] = true
	return s.Reader.List(ctx, gvk, namespace, selector)
}

// TestTheTableSaysWhoReadsAKind: what a controller reads of the kinds that the library knows, the table says that its
// packages do; so the kubectl command has it.
func TestTheTableSaysWhoReadsAKind(t *testing.T) {
	packages := map[string][]string{
		controllers.Catalog: {"catalog"}, controllers.InstallPlan: {"installplan"}, controllers.Group: {"csv"}, controllers.CSV: {"csv"},
		controllers.Copies: {"csv"}, controllers.OLMConfig: {"csv"}, controllers.CSVSweep: {"csv"}, controllers.Condition: {"csv"}, controllers.Permissions: {"csv"}, controllers.Sweep: {"installplan"}, controllers.Operator: {"subscription"},
		controllers.Subscription: {"subscription", "resolution", "installplan"},
	}
	worlds, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	texts := []string{largeCluster(2 * tenantObjects), strings.ReplaceAll(largeCluster(tenantObjects), `"generation":1`, `"generation":1,"deletionTimestamp":"2026-01-01T11:59:00Z","finalizers":["operators.coreos.com/csv-cleanup"]`)}
	for _, world := range worlds {
		text, err := os.ReadFile(world)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	read := map[schema.GroupKind]bool{}
	for _, text := range texts {
		objects, err := decode.Read("test", strings.NewReader(text))
		require.NoError(t, err)
		cluster, err := load(objects, clock)
		require.NoError(t, err)
		o := olm.OLM{Options: controllers.Options{KubernetesVersion: newestKubernetes, Sweeps: true, Operators: true}}
		for _, c := range o.Controllers() {
			require.Contains(t, packages, c.Name)
			keys, err := c.Keys(t.Context(), cluster)
			require.NoError(t, err)
			for _, key := range keys {
				s := spy{cluster, map[schema.GroupVersionKind]bool{}}
				_, err := c.Reconcile(t.Context(), s, key, clock, nil)
				require.NoError(t, err)
				for gvk := range s.kinds {
					k, known := olmcore.KindOf(gvk.GroupKind())
					if !known {
						continue
					}
					read[gvk.GroupKind()] = true
					require.True(t, slices.ContainsFunc(packages[c.Name], func(p string) bool { return slices.Contains(k.ReadBy, p) }),
						"%s reads %s, the table says %s", c.Name, gvk.Kind, k.ReadBy)
				}
			}
		}
	}
	for _, k := range olmcore.Kinds() {
		if len(k.ReadBy) > 0 && k.GroupVersionKind.Kind != "Job" && k.GroupVersionKind.Kind != "Secret" { // no bundle is unpacked here
			require.True(t, read[k.GroupKind()], "nothing reads %s", k.GroupVersionKind.Kind)
		}
	}
}

// TestTheTableNamesKindsAsAnAPIServerDoes compares with the kinds that the fake cluster serves.
func TestTheTableNamesKindsAsAnAPIServerDoes(t *testing.T) {
	served := map[schema.GroupVersionKind]fake.ServedKind{}
	for _, k := range fake.NewCluster(clock).Discovery().Kinds() {
		served[k.GroupVersionKind] = k
	}
	for _, k := range olmcore.Kinds() {
		require.Equal(t, k.Plural, served[k.GroupVersionKind].Resource, k.GroupVersionKind)
		require.Equal(t, k.Namespaced, served[k.GroupVersionKind].Namespaced, k.GroupVersionKind)
	}
}
