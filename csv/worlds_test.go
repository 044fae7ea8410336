// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// rounds is within how many rounds a world must come to rest: from a new CSV to a replaced predecessor that is cleaned
// up.
const rounds = 16

func fromFiles(names ...string) ([]olmcore.Object, error) {
	var all []olmcore.Object
	for _, name := range names {
		f, err := os.Open("testdata/" + name)
		if err != nil {
			return nil, err
		}
		found, err := manifest.Read(name, f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			all = append(all, o.Object)
		}
	}
	return all, nil
}

func world(steps func(c *fake.Cluster, d *fake.Driver) error, files ...string) invariant.World {
	return invariant.World{
		Rounds: rounds,
		New: func() (*fake.Cluster, error) {
			c, d := newWorld(csv.Config{})
			objects, err := fromFiles(files...)
			if err != nil {
				return nil, err
			}
			if err := c.Create(objects...); err != nil {
				return nil, err
			}
			return c, steps(c, d)
		},
		Controllers: func(*fake.Cluster) []fake.Controller { return controllers(csv.Config{}) },
		// How often a CSV went through its phases is the history of a run, not its end.
		Ignore: func(o map[string]any) {
			if status, ok := o["status"].(map[string]any); ok && o["kind"] == "ClusterServiceVersion" {
				delete(status, "conditions")
			}
		},
	}
}

func asIs(*fake.Cluster, *fake.Driver) error { return nil }

func TestWorldsComeToRestAndSurviveLostWrites(t *testing.T) {
	installed := func(c *fake.Cluster, d *fake.Driver) error { return d.Settle(context.Background()) }
	for name, w := range map[string]invariant.World{
		"a first installation":            world(asIs, "base.yaml", "v1.yaml"),
		"an installation without a group": world(asIs, "v1.yaml"),
		"an upgrade": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			objects, err := fromFiles("rbac-v2.yaml", "v2.yaml")
			if err != nil {
				return err
			}
			return c.Create(objects...)
		}, "base.yaml", "v1.yaml"),
		"both versions at once": world(asIs, "base.yaml", "rbac-v2.yaml", "v1.yaml", "v2.yaml"),
		"a removal": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(refOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1")))
		}, "base.yaml", "v1.yaml"),
		"a lost Deployment": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(olmcore.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "cool"})
		}, "base.yaml", "v1.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.Settles(w))
			require.NoError(t, invariant.Repeatable(w))
			require.NoError(t, invariant.Resumable(w))
		})
	}
}

// TestAnyChainEndsWithItsHead creates versions that replace each other in any order, with cycles and with writes that
// get lost, and expects the head alone.
func TestAnyChainEndsWithItsHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, d := newWorld(csv.Config{})
		base, err := fromFiles("base.yaml")
		require.NoError(t, err)
		require.NoError(t, c.Create(base...))
		v1, err := fromFiles("v1.yaml")
		require.NoError(t, err)
		n := rapid.IntRange(1, 5).Draw(t, "versions")
		cycle := rapid.Bool().Draw(t, "cycle")
		order := rapid.Permutation(indices(n)).Draw(t, "order")
		// A version that comes when its successor is gone is no part of the chain.
		between := rapid.Bool().Draw(t, "between") || cycle
		if between {
			slices.Sort(order)
		}
		for _, i := range order {
			v := v1[0].DeepCopyObject().(*v1alpha1.ClusterServiceVersion)
			v.Name = fmt.Sprintf("chain.v%d", i)
			v.Spec.Version.Major = uint64(i)
			if i > 0 {
				v.Spec.Replaces = fmt.Sprintf("chain.v%d", i-1)
			} else if cycle {
				v.Spec.Replaces = fmt.Sprintf("chain.v%d", n-1)
			}
			require.NoError(t, c.Create(needs(v)[1:]...))
			require.NoError(t, c.Create(v))
			if rapid.Bool().Draw(t, "lost") {
				c.Inject(fake.Fault{Mode: fake.FailWithoutEffect, Nth: rapid.IntRange(1, 6).Draw(t, "nth")})
			}
			for range rapid.IntRange(0, 4).Draw(t, "rounds") {
				if !between {
					break
				}
				_, err := d.Round(context.Background())
				require.NoError(t, err)
				neverWithoutOperator(t, c)
			}
			if between && rapid.Bool().Draw(t, "settle") {
				require.NoError(t, d.Settle(context.Background()))
			}
			require.NoError(t, c.RunFor(time.Second))
		}
		require.NoError(t, d.RunUntilIdle(context.Background(), time.Hour))
		left := csvs(c)
		require.Len(t, left, 1, "%s", fake.Format(d.Events))
		require.Equal(t, fmt.Sprintf("chain.v%d", n-1), left[0].Name)
		require.Equal(t, succeeded, left[0].Status.Phase, left[0].Status.Message)
		for _, o := range c.Objects() {
			if _, ok := o.(*rbacv1.ClusterRole); ok && o.GetLabels()[olmcore.LabelOwnerKind] == "ClusterServiceVersion" && o.GetLabels()[olmcore.LabelOwner] != "cool.v1" {
				require.Equal(t, left[0].Name, o.GetLabels()[olmcore.LabelOwner], "only the head's permissions are left")
			}
		}
	})
}

// neverWithoutOperator: once a version was Succeeded, one is always Succeeded, Replacing, or has a successor that is.
func neverWithoutOperator(t *rapid.T, c *fake.Cluster) {
	all := csvs(c)
	for _, v := range all {
		if v.DeletionTimestamp == nil || v.Status.Phase == succeeded {
			continue
		}
		require.True(t, slices.ContainsFunc(all, func(s *v1alpha1.ClusterServiceVersion) bool {
			return s.Name != v.Name && s.Status.Phase != none && s.DeletionTimestamp == nil
		}), "%s goes and nothing follows it", v.Name)
	}
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// csvs are the original versions, without copies.
func csvs(c *fake.Cluster) []*v1alpha1.ClusterServiceVersion {
	var found []*v1alpha1.ClusterServiceVersion
	for _, o := range c.Objects() {
		if v, ok := o.(*v1alpha1.ClusterServiceVersion); ok && v.Labels["olm.copiedFrom"] == "" {
			found = append(found, v)
		}
	}
	return found
}
