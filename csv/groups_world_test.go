// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// groupSpecs are those that an operator for single namespaces supports, and those that it does not.
func groupSpecs(fit bool) map[string]operatorsv1.OperatorGroupSpec {
	if fit {
		return map[string]operatorsv1.OperatorGroupSpec{
			"own":      {TargetNamespaces: []string{"ns"}},
			"single":   {TargetNamespaces: []string{"target"}},
			"selector": {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "target"}}},
		}
	}
	return map[string]operatorsv1.OperatorGroupSpec{
		"all": {}, "many": {TargetNamespaces: []string{"ns", "target"}},
		"none":    {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}},
		"invalid": {TargetNamespaces: []string{""}},
		"account": {TargetNamespaces: []string{"ns"}, ServiceAccountName: "nobody"},
	}
}

func drawSpec(t *rapid.T, specs map[string]operatorsv1.OperatorGroupSpec) operatorsv1.OperatorGroupSpec {
	names := make([]string, 0, len(specs))
	for name := range specs {
		names = append(names, name)
	}
	slices.Sort(names)
	return specs[rapid.SampledFrom(names).Draw(t, "spec")]
}

func groupsOf(c *fake.Cluster) []*operatorsv1.OperatorGroup {
	found, _ := olmcore.List[*operatorsv1.OperatorGroup](context.Background(), c, "ns", nil)
	return found
}

// TestGroupsMayChangeAtAnyMoment swaps, doubles, breaks and takes away the OperatorGroup while versions are installed
// and upgraded. Nothing is installed without exactly one group that fits, and with one everything runs in the end,
// watching what the group says.
func TestGroupsMayChangeAtAnyMoment(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		base, err := fromFiles("base.yaml")
		require.NoError(t, err)
		require.NoError(t, cluster.Create(base[1:]...))
		require.NoError(t, cluster.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "target"}}))
		require.NoError(t, cluster.RunFor(time.Second))
		var violation error
		cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
			if groups := groupsOf(cluster); target.Kind == "Deployment" && verb == olmcore.VerbCreate && len(groups) != 1 {
				violation = fmt.Errorf("%s %s with %d groups", verb, target, len(groups))
			}
			return nil
		}
		v1, err := fromFiles("v1.yaml")
		require.NoError(t, err)
		require.NoError(t, cluster.Create(v1...))
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			groups := groupsOf(cluster)
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
				g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: drawSpec(t, groupSpecs(rapid.Bool().Draw(t, "fits")))}
				require.NoError(t, ignoreExisting(cluster.Create(g)))
			case 2:
				if len(groups) > 0 {
					require.NoError(t, cluster.Delete(refOf(groups[0])))
				}
			case 3:
				if len(groups) > 0 {
					spec := drawSpec(t, groupSpecs(rapid.Bool().Draw(t, "fits")))
					require.NoError(t, fake.Edit(cluster, "ns", groups[len(groups)-1].Name, func(g *operatorsv1.OperatorGroup) { g.Spec = spec }))
				}
			case 4:
				if objects, err := fromFiles("rbac-v2.yaml", "v2.yaml"); err == nil {
					for _, o := range objects {
						require.NoError(t, ignoreExisting(cluster.Create(o)))
					}
				}
			case 5:
				cluster.Inject(fake.Fault{
					Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "fault"),
					Nth:  rapid.IntRange(1, 4).Draw(t, "nth"),
				})
			case 6:
				require.NoError(t, cluster.RunFor(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds"))*time.Second))
			}
			for range rapid.IntRange(0, 4).Draw(t, "rounds") {
				_, err := driver.Round(ctx)
				require.NoError(t, err)
				require.NoError(t, violation, "%s", fake.Format(driver.Events))
			}
		}
		cluster.Recover()
		for _, g := range groupsOf(cluster) {
			require.NoError(t, cluster.Delete(refOf(g)))
		}
		last := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "last"}, Spec: drawSpec(t, groupSpecs(true))}
		require.NoError(t, cluster.Create(last))
		require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
		require.NoError(t, violation)
		left := csvs(cluster)
		require.Len(t, left, 1, "%s", fake.Format(driver.Events))
		require.Equal(t, succeeded, left[0].Status.Phase, "%s: %s\n%s", left[0].Status.Reason, left[0].Status.Message, fake.Format(driver.Events))
		last = groupsOf(cluster)[0]
		require.Equal(t, "last", left[0].Annotations["olm.operatorGroup"])
		require.Equal(t, strings.Join(last.Status.Namespaces, ","), left[0].Annotations["olm.targetNamespaces"])
		require.Equal(t, "Cool.v1.example.com", last.Annotations["olm.providedAPIs"])
	})
}

// TestAClockThatJumpsHarmsNothing: the controllers' clock is wrong, back and forth, through installation, upgrade and
// deletion. Waits stay bounded, times in status never make a later step impossible, and it all ends as it should.
func TestAClockThatJumpsHarmsNothing(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		skews := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, -time.Hour, -time.Minute, time.Minute, 24 * time.Hour}), 5, 5).Draw(t, "skews")
		calls := 0
		driver.Controllers = controllersWith(csv.Config{}, func(in *csv.Input) {
			if len(skews) > 0 {
				in.Now = in.Now.Add(skews[calls%len(skews)])
			}
			calls++
		})
		live := func(name string) *v1alpha1.ClusterServiceVersion {
			return fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", name)
		}
		bring := func(files ...string) {
			objects, err := fromFiles(files...)
			require.NoError(t, err)
			require.NoError(t, cluster.Create(objects...))
			for range rapid.IntRange(0, 12).Draw(t, "rounds") {
				_, err := driver.Round(ctx)
				require.NoError(t, err)
				require.NoError(t, cluster.RunFor(time.Second))
				for _, d := range driver.Deadlines() {
					require.LessOrEqual(t, d.At.Sub(cluster.Now()), csv.DefaultInstallTimeout, "%s waits too long", d.Key)
				}
			}
		}
		bring("base.yaml", "v1.yaml")
		bring("rbac-v2.yaml", "v2.yaml")
		if v2 := live("cool.v2"); rapid.Bool().Draw(t, "deleted") {
			require.NoError(t, cluster.Delete(refOf(v2)))
			bring()
		}
		skews = nil
		require.NoError(t, driver.RunUntilIdle(ctx, 48*time.Hour))
		for _, v := range csvs(cluster) {
			require.Nil(t, v.DeletionTimestamp, "%s: %s", v.Name, v.Status.Message)
			require.Equal(t, succeeded, v.Status.Phase, "%s: %s %s\n%s", v.Name, v.Status.Reason, v.Status.Message, fake.Format(driver.Events))
		}
	})
}
