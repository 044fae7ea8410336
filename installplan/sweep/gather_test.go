// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/internal/terms"
	"github.com/olmcore/olm/olmcore"
)

func TestGatherReadsTheNamespace(t *testing.T) {
	sub := Subscription("a", RefersTo("install-1"))
	p := Owned(Numbered(1, Complete), sub)
	p.Status.Plan = append(p.Status.Plan, RoleStep("a.v1", "r"), CRDStep("a.v1", "v1"))
	elsewhere := Numbered(2, Complete, InNamespace("other"), func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = Reference() })
	unrelated := Numbered(4, Complete, InNamespace("other"))
	objects := []olmcore.Object{sub, p, Owned(Numbered(3, Complete), sub), elsewhere, unrelated, CSV("a.v1"), UnpackedBundle(0), &corev1.ConfigMap{ObjectMeta: Meta("x")}}
	r := Reader(t, objects...)
	in, err := sweep.Gather(t.Context(), r, NS, installplan.Config{})
	require.NoError(t, err)
	require.Len(t, in.InstallPlans.Items, 2)
	require.Len(t, in.Subscriptions.Items, 1)
	require.Len(t, in.ConfigMaps.Items, 1)
	require.Equal(t, olmcore.Found(elsewhere), in.OtherPlans)
	require.Len(t, in.Steps, 1, "only objects of the plan that a Subscription references")
	in.Now = Noon
	Same(t, []string{"StepObjectAbsent", "StepObjectAbsent"}, Reasons(Swept(t, in)))

	for _, kind := range []string{"Namespace", "Subscription", "InstallPlan", "ConfigMap", "ClusterServiceVersion", "Role", "CustomResourceDefinition"} {
		r := Reader(t, objects...)
		r.Fail = kind
		_, err := sweep.Gather(t.Context(), r, NS, installplan.Config{})
		require.Error(t, err, kind)
	}
	r = Reader(t, sub, p)
	_, err = sweep.Gather(t.Context(), r, NS, installplan.Config{})
	require.NoError(t, err)
	require.Equal(t, 1, r.Kinds["InstallPlan"], "other namespaces matter to unpacked bundles alone")
}

func TestAffected(t *testing.T) {
	refers := Numbered(1, Complete, func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = Reference() }, InNamespace("other"))
	for _, c := range []struct {
		o    olmcore.Object
		want []types.NamespacedName
	}{
		{Subscription("a"), []types.NamespacedName{{Namespace: NS}}},
		{Numbered(1, Complete), []types.NamespacedName{{Namespace: NS}}},
		{refers, []types.NamespacedName{{Namespace: NS}, {Namespace: "other"}}},
		{UnpackedBundle(0), []types.NamespacedName{{}}},
		{Installed(CRDObject("v1"), true), []types.NamespacedName{{}}},
		{&corev1.Pod{ObjectMeta: Meta("p")}, nil},
		{(*v1alpha1.InstallPlan)(nil), nil},
	} {
		Same(t, c.want, sweep.Affected(c.o))
	}
}

// TestAffectedContainsEveryNamespaceWhoseResultChanges checks that deleting an object changes the Result of a namespace
// only if Affected returns that namespace.
func TestAffectedContainsEveryNamespaceWhoseResultChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anySweepInput(t)
		text := func(in sweep.Input) string {
			r := Swept(t, in)
			return fmt.Sprint(Describe(r), Reasons(r), r.RequeueAfter/time.Second)
		}
		want := text(in)
		named := func(o olmcore.Object) {
			require.Contains(t, olmcore.ExpandKeys(sweep.Affected(o), []types.NamespacedName{{Namespace: NS, Name: "x"}}),
				types.NamespacedName{Namespace: NS, Name: "x"}, "%s", olmcore.KeyOf(o))
		}
		for i, p := range in.InstallPlans.Items {
			without := in
			without.InstallPlans.Items = append(append([]*v1alpha1.InstallPlan{}, in.InstallPlans.Items[:i]...), in.InstallPlans.Items[i+1:]...)
			if text(without) != want {
				named(p)
			}
		}
		for i, s := range in.Subscriptions.Items {
			without := in
			without.Subscriptions.Items = append(append([]*v1alpha1.Subscription{}, in.Subscriptions.Items[:i]...), in.Subscriptions.Items[i+1:]...)
			if text(without) != want {
				named(s)
			}
		}
	})
}

// TestUnreadKindsAreNotSwept checks that missing objects of a plan are not reported, and bundles are not deleted, if
// their kinds were not read.
func TestUnreadKindsAreNotSwept(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"), func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "a.v1" })
	p := Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1"), WithStatus(Created, RoleStep("a.v1", "r"))}, OwnedBy(sub))
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{p, sub, CSV("a.v1")})
	require.NoError(t, err)
	in, err := sweep.Gather(t.Context(), snapshot, NS, installplan.Config{})
	require.NoError(t, err)
	in.Now = Noon
	var said []string
	for _, d := range Swept(t, in).Diagnostics {
		require.Equal(t, sweep.ReasonNotRead, d.Reason)
		said = append(said, d.Message)
	}
	Same(t, []string{
		"Namespace objects were not read, so whether the namespace is being deleted is unknown",
		"ConfigMap objects were not read, so which unpacked bundles are not needed is unknown",
		"Role objects were not read, so which objects of InstallPlans are gone is unknown",
	}, said)
	require.Empty(t, Swept(t, in).Actions)
}

// indexing is a Reader with indexes of objects that do not change.
type indexing struct {
	Counting
	kept map[string]*terms.Index
}

func (r indexing) Find(ctx context.Context, reader olmcore.Reader, l olmcore.Lookup, by ...olmcore.Term) ([]olmcore.Object, error) {
	if r.kept[l.Key] == nil {
		all, err := reader.List(ctx, l.Kind, l.Namespace, nil)
		if err != nil {
			return nil, err
		}
		r.kept[l.Key] = terms.NewIndex(all, l.TermsOf)
	}
	return r.kept[l.Key].Find(by...), nil
}

func (r indexing) Index(_ schema.GroupVersionKind, _, _ string, build func() any) any { return build() }

func (r indexing) ListMetadata(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector,
) ([]olmcore.Object, error) {
	return r.List(ctx, gvk, namespace, selector)
}

// TestPlansThatNeedNoBundleDoNotChangeTheResult checks that the plans that Gather reads give the same Result as all
// plans of other namespaces. With an index, these plans are read once for all namespaces.
func TestPlansThatNeedNoBundleDoNotChangeTheResult(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		namespaces, images := []string{NS, "other", "third"}, []string{"a", "b", "c"}
		one := func(label string, names []string) string { return rapid.SampledFrom(names).Draw(rt, label) }
		var objects []olmcore.Object
		var plans []*v1alpha1.InstallPlan
		for _, namespace := range namespaces {
			for _, image := range images {
				cm := UnpackedBundle(time.Duration(rapid.IntRange(0, 48).Draw(rt, "hours")) * time.Hour)
				cm.Namespace, cm.Name, cm.UID = namespace, bundle.Name(image), types.UID(namespace+image)
				objects = append(objects, cm)
			}
		}
		for i := range rapid.IntRange(0, 6).Draw(rt, "plans") {
			p := Numbered(i, Complete, InNamespace(one("namespace", namespaces)))
			switch needs := bundle.Name(one("image", images)); one("by", []string{"step", "lookup", "nothing"}) {
			case "step":
				p.Status.Plan[0].Resource.Manifest = strings.NewReplacer(BundleName, needs, `"namespace":"`+NS, `"namespace":"`+one("in", namespaces)).Replace(Reference())
			case "lookup":
				p.Status.BundleLookups = []v1alpha1.BundleLookup{{Path: one("path", images), CatalogSourceRef: &corev1.ObjectReference{Namespace: one("in", namespaces)}}}
			}
			plans, objects = append(plans, p), append(objects, p)
		}
		kept := indexing{Reader(t, objects...), map[string]*terms.Index{}}
		for _, namespace := range namespaces {
			in, err := sweep.Gather(t.Context(), Reader(t, objects...), namespace, installplan.Config{})
			require.NoError(rt, err)
			indexed, err := sweep.Gather(t.Context(), kept, namespace, installplan.Config{})
			require.NoError(rt, err)
			require.Empty(rt, cmp.Diff(in, indexed, cmpopts.EquateEmpty()))
			in.Now = Noon
			all := in
			all.OtherPlans = olmcore.Found[*v1alpha1.InstallPlan]()
			for _, p := range plans {
				if p.Namespace != namespace {
					all.OtherPlans.Items = append(all.OtherPlans.Items, p)
				}
			}
			require.Empty(rt, cmp.Diff(Swept(rt, all), Swept(rt, in)))
			require.LessOrEqual(rt, len(in.OtherPlans.Items), len(all.OtherPlans.Items))
		}
		require.Equal(rt, len(namespaces)+1, kept.Kinds["InstallPlan"], "those of each namespace, and once all")
	})
}

// TestUnrelatedSubscriptionsDoNotChangeTheResult checks that Subscriptions without a relation to the plans do not
// change the Result, even if there are so many that they are indexed.
func TestUnrelatedSubscriptionsDoNotChangeTheResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, others := DrawRelations(t)
		decide := func(objects []olmcore.Object) olmcore.Result {
			snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(t, err)
			in, err := sweep.Gather(t.Context(), snapshot, "ns", installplan.Config{MaxInstallPlans: 1})
			require.NoError(t, err)
			in.Now = Noon
			result, err := SweepResult(in)
			require.NoError(t, err)
			return result
		}
		require.Empty(t, cmp.Diff(decide(objects), decide(append(objects, others...))))
	})
}
