// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

// selecting is a Snapshot that notes what is selected, and which of that no index answers.
type selecting struct {
	*olmcore.Snapshot
	keys map[string]bool
	scan []string
}

func (r *selecting) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if selector != nil && !selector.Empty() {
		requirements, _ := selector.Requirements()
		for _, q := range requirements {
			r.keys[q.Key()] = true
		}
		// The selector of an OperatorGroup is its user's, and namespaces are few. Of what is not watched the API server
		// selects.
		kind, _ := olmcore.KindOf(gvk.GroupKind())
		if olmcore.IndexTerm(gvk, selector) == "" && gvk.Kind != "Namespace" && kind.Watch != olmcore.WatchNever {
			r.scan = append(r.scan, gvk.Kind+" by "+selector.String())
		}
	}
	return r.Snapshot.List(ctx, gvk, namespace, selector)
}

// TestEverySelectorIsAnsweredByAnIndex: one that is not goes through all objects of its kind, each time. All labels
// that are indexed are asked for here.
func TestEverySelectorIsAnsweredByAnIndex(t *testing.T) {
	world := objectsForEverySelector()
	all := gathers()
	key := types.NamespacedName{Namespace: "ns", Name: "name"}
	all["permissions.Gather"] = func(ctx context.Context, r olmcore.Reader) error {
		_, err := permissions.Gather(ctx, r, key)
		return err
	}
	all["operatorcondition.Gather"] = func(ctx context.Context, r olmcore.Reader) error {
		_, err := operatorcondition.Gather(ctx, r, key)
		return err
	}
	all["component.GatherOwned"] = func(ctx context.Context, r olmcore.Reader) error {
		labelled := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "name", Labels: map[string]string{olmcore.ComponentLabelPrefix + "p.ns": ""}}}
		_, err := component.GatherOwned(ctx, r, "ns", []*v1alpha1.ClusterServiceVersion{labelled})
		return err
	}
	all["unpack.Gather"] = func(ctx context.Context, r olmcore.Reader) error {
		_, err := unpack.Gather(ctx, r, "ns", v1alpha1.BundleLookup{Path: "image", CatalogSourceRef: &corev1.ObjectReference{Namespace: "ns", Name: "name"}}, installplan.Config{})
		return err
	}
	keys := map[string]bool{}
	for name, gather := range all {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot(world, olmcore.Everything)
			require.NoError(t, err)
			r := &selecting{Snapshot: snapshot, keys: keys}
			require.NoError(t, gather(t.Context(), r))
			require.Empty(t, r.scan, "give the label a row in olmcore/labels.go")
		})
	}
	delete(keys, "team")
	require.Equal(t, []string{
		"catalogsource.operators.coreos.com/update", "job-name", "olm.catalogSource", "olm.copiedFrom", "olm.managed", "olm.operatorgroup.uid/g",
		"olm.owner", "olm.owner.kind", "olm.owner.namespace", "operatorframework.io/bundle-unpack-ref", "operators.coreos.com/name",
	}, slices.Sorted(maps.Keys(keys)))
}

// objectsForEverySelector are such that each Gather comes to all of its selectors.
func objectsForEverySelector() []olmcore.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1"}
	}
	group := &operatorsv1.OperatorGroup{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup"}, ObjectMeta: meta("name")}
	group.UID = "g"
	group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	group.Status.Namespaces = []string{"ns", "other"}
	version := &v1alpha1.ClusterServiceVersion{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}, ObjectMeta: meta("name")}
	version.Annotations = map[string]string{"olm.operatorGroup": "name", "olm.operatorNamespace": "ns", "olm.targetNamespaces": "ns,other"}
	version.Finalizers, version.DeletionTimestamp = []string{"operators.coreos.com/csv-cleanup"}, &metav1.Time{}
	version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	version.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "robot"}}
	version.Status.Phase = v1alpha1.CSVPhaseSucceeded
	config := &operatorsv1.OLMConfig{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1", Kind: "OLMConfig"}}
	config.Name = "cluster"
	plan := &v1alpha1.InstallPlan{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"}, ObjectMeta: meta("name")}
	source := &v1alpha1.CatalogSource{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource"}, ObjectMeta: meta("name")}
	source.Spec.SourceType, source.Spec.Image = v1alpha1.SourceTypeGrpc, "image"
	objects := []olmcore.Object{group, version, plan, source, config}
	for _, name := range []string{"ns", "other"} {
		n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
		n.Name = name
		objects = append(objects, n)
	}
	unpacked := unpackName(objects)
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta(unpacked)}
	job.Labels = map[string]string{"operatorframework.io/bundle-unpack-ref": unpacked}
	return append(objects, job)
}

// unpackName is the name under which the image of the lookup is unpacked: what unpack.Gather reads first.
func unpackName(objects []olmcore.Object) (name string) {
	snapshot, _ := olmcore.NewSnapshot(objects, olmcore.Everything)
	r := &naming{Snapshot: snapshot, name: &name}
	_, _ = unpack.Gather(context.Background(), r, "ns", v1alpha1.BundleLookup{Path: "image", CatalogSourceRef: &corev1.ObjectReference{Namespace: "ns", Name: "name"}}, installplan.Config{})
	return name
}

type naming struct {
	*olmcore.Snapshot
	name *string
}

func (r *naming) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if gvk.Kind == "ConfigMap" {
		*r.name = name
	}
	return r.Snapshot.Get(ctx, gvk, namespace, name)
}
