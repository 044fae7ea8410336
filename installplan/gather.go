// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"context"
	"errors"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at for one plan; the caller adds Now and
// what only it knows. The steps of a plan that has nothing left to do are not
// read. A plan that does not exist is an error for which apierrors.IsNotFound
// holds; a read that failed is its error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	g := gatherer{ctx: ctx, r: r, in: Input{Config: config}}
	plan, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about an InstallPlan")
	}
	if plan == nil {
		return Input{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "installplans"}, key.Name)
	}
	g.in.InstallPlan = plan
	var namespaceRead bool
	if g.in.Namespace, namespaceRead, err = namespaceIfRead(ctx, r, key.Namespace); err != nil {
		return Input{}, err
	}
	if err := g.subscriptions(); err != nil {
		return Input{}, olmcore.Needed(err, "who needs an InstallPlan")
	}
	if plan.DeletionTimestamp != nil && slices.Contains(plan.Finalizers, Finalizer) {
		err = g.leftBundles()
		return g.in, err
	}
	if conditionOf(&plan.Status, ConditionRetrying) != nil && plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed && !isNeeded(plan, g.in.Subscriptions) {
		return g.in, olmcore.Needed(g.named(plan.Spec.ClusterServiceVersionNames), "whether an InstallPlan that failed has brought its versions")
	}
	if !looksAtSteps(g.in) {
		return g.in, nil
	}
	if err := g.steps(); err != nil {
		return Input{}, olmcore.Needed(err, "what an InstallPlan has still to do")
	}
	if !namespaceRead {
		return Input{}, &olmcore.NotReadError{Kind: namespaceKind, Unknown: "whether the namespace of an InstallPlan is being deleted"}
	}
	return g.in, nil
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// namespaceIfRead returns a Namespace, nil when it does not exist or was not read.
func namespaceIfRead(ctx context.Context, r olmcore.Reader, name string) (found *corev1.Namespace, read bool, err error) {
	list, err := olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", name)
	if err != nil || len(list.Items) == 0 {
		return nil, list.Complete, err
	}
	return list.Items[0], true, nil
}

// looksAtSteps reports whether Reconcile may look beyond the plan and its
// Subscriptions.
func looksAtSteps(in Input) bool {
	plan := in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil, terminating(in.Namespace), len(plan.Status.Plan)+len(plan.Status.BundleLookups) == 0:
		return false
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return mayHeal(plan, in.Subscriptions)
	}
	return plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && in.successor() == ""
}

type gatherer struct {
	ctx  context.Context
	r    olmcore.Reader
	in   Input
	seen map[olmcore.Key]bool
}

// GatherCreate reads what Create looks at in a namespace; the caller adds Now.
func GatherCreate(ctx context.Context, r olmcore.Reader, namespace string, resolution olmcore.Resolution, config Config) (CreateInput, error) {
	in := CreateInput{Namespace: namespace, Resolution: resolution, Config: config}
	var err error
	if in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil); err != nil {
		return CreateInput{}, olmcore.Needed(err, "who owns a new InstallPlan")
	}
	if in.InstallPlans, err = olmcore.List[*v1alpha1.InstallPlan](ctx, r, namespace, nil); err != nil {
		return CreateInput{}, olmcore.Needed(err, "whether the InstallPlan exists")
	}
	if in.OperatorGroups, err = olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil); err != nil {
		return CreateInput{}, olmcore.Needed(err, "as which account a new InstallPlan runs")
	}
	for _, o := range resolution.Operators {
		csv, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, namespace, o.Name)
		if err != nil {
			return CreateInput{}, olmcore.Needed(err, "what is installed")
		}
		if csv != nil {
			in.ClusterServiceVersions = append(in.ClusterServiceVersions, csv)
		}
		if o.Bundle.Image == "" || len(o.Bundle.Objects) > 0 {
			continue
		}
		cm, err := olmcore.Get[*corev1.ConfigMap](ctx, r, o.Catalog.Namespace, unpackName(o.Bundle.Image))
		if err != nil {
			return CreateInput{}, olmcore.Needed(err, "whether a bundle is unpacked")
		}
		if cm != nil {
			in.ConfigMaps = append(in.ConfigMaps, cm)
		}
	}
	return in, nil
}

var managed = labels.SelectorFromSet(labels.Set{olmcore.LabelManaged: "true"})

// GatherSweep reads what Sweep looks at in a namespace; the caller adds Now and
// Lookups. The plans of other namespaces are read only when the namespace holds
// unpacked bundles.
func GatherSweep(ctx context.Context, r olmcore.Reader, namespace string, config Config) (SweepInput, error) {
	in := SweepInput{Namespace: namespace, Config: config}
	ns, read, err := namespaceIfRead(ctx, r, namespace)
	if err != nil {
		return SweepInput{}, err
	}
	if in.Terminating = terminating(ns); !read {
		in.unread(namespaceKind)
	}
	if in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil); err != nil {
		return SweepInput{}, olmcore.Needed(err, "which InstallPlans are needed")
	}
	if in.InstallPlans, err = olmcore.List[*v1alpha1.InstallPlan](ctx, r, namespace, nil); err != nil {
		return SweepInput{}, olmcore.Needed(err, "everything about the InstallPlans of a namespace")
	}
	configMaps, err := olmcore.Observe[*corev1.ConfigMap](ctx, r, namespace, managed)
	if err != nil {
		return SweepInput{}, err
	}
	if !configMaps.Complete {
		in.unread(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	}
	if in.ConfigMaps = slices.DeleteFunc(configMaps.Items, func(cm *corev1.ConfigMap) bool { return !holdsBundle(cm) }); len(in.ConfigMaps) > 0 {
		if in.OtherPlans, err = otherPlans(ctx, r, func(p *v1alpha1.InstallPlan) bool { return p.Namespace == namespace }); err != nil {
			return SweepInput{}, err
		}
		if !in.OtherPlans.Complete {
			in.unread(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind))
		}
	}
	ties := newTies(in.Subscriptions)
	for _, p := range in.InstallPlans {
		if !ties.isCurrent(p, config) {
			continue
		}
		g := gatherer{ctx: ctx, r: r, in: Input{InstallPlan: p, Config: config}}
		var notRead *olmcore.NotReadError
		if err := g.installed(); errors.As(err, &notRead) {
			in.unread(notRead.Kind)
			continue // what is there of it is not known
		} else if err != nil {
			return SweepInput{}, err
		}
		in.Steps = append(in.Steps, StepObjects{
			InstallPlan: p.UID, CustomResourceDefinitions: g.in.CustomResourceDefinitions,
			ClusterServiceVersions: g.in.ClusterServiceVersions, Objects: g.in.Objects,
		})
	}
	return in, nil
}

func (in *SweepInput) unread(kind schema.GroupVersionKind) {
	if !slices.Contains(in.Unread, kind) {
		in.Unread = append(in.Unread, kind)
	}
}

// otherPlans lists the plans of all namespaces but those that it is told to
// leave out, where these were read.
func otherPlans(ctx context.Context, r olmcore.Reader, leaveOut func(*v1alpha1.InstallPlan) bool) (olmcore.Observed[*v1alpha1.InstallPlan], error) {
	all, err := olmcore.Observe[*v1alpha1.InstallPlan](ctx, r, "", nil)
	all.Items = slices.DeleteFunc(all.Items, leaveOut)
	return all, err
}

// GatherUnpack reads what Unpack looks at for one lookup of a namespace of
// Subscriptions; the caller adds Now. A lookup without path or CatalogSource
// reads nothing: Unpack says what is wrong with it.
func GatherUnpack(ctx context.Context, r olmcore.Reader, namespace string, lookup v1alpha1.BundleLookup, config Config) (UnpackInput, error) {
	in := UnpackInput{Lookup: lookup, Config: config}
	ref := lookup.CatalogSourceRef
	if ref == nil || ref.Namespace == "" || ref.Name == "" || lookup.Path == "" {
		return in, nil
	}
	name := unpackName(lookup.Path)
	for _, read := range [...]func() error{
		func() (err error) {
			in.OperatorGroups, err = olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil)
			return err
		},
		func() (err error) {
			in.CatalogSource, err = olmcore.Get[*v1alpha1.CatalogSource](ctx, r, ref.Namespace, ref.Name)
			return err
		},
		func() (err error) {
			in.ConfigMap, err = olmcore.Get[*corev1.ConfigMap](ctx, r, ref.Namespace, name)
			return err
		},
		func() (err error) {
			in.Role, err = olmcore.Get[*rbacv1.Role](ctx, r, ref.Namespace, name)
			return err
		},
		func() (err error) {
			in.RoleBinding, err = olmcore.Get[*rbacv1.RoleBinding](ctx, r, ref.Namespace, name)
			return err
		},
		func() (err error) {
			in.ServiceAccount, err = olmcore.Get[*corev1.ServiceAccount](ctx, r, ref.Namespace, name)
			return err
		},
		func() error { return in.gatherJobs(ctx, r, ref.Namespace, name) },
	} {
		if err := read(); err != nil {
			return UnpackInput{}, olmcore.Needed(err, "whether a bundle is unpacked")
		}
	}
	return in, nil
}

// gatherJobs reads the Jobs of a bundle, with its label or, as OLM made them once,
// without, and their Pods.
func (in *UnpackInput) gatherJobs(ctx context.Context, r olmcore.Reader, namespace, name string) error {
	selector := labels.SelectorFromSet(labels.Set{labelUnpackRef: name})
	var err error
	if in.Jobs, err = olmcore.List[*batchv1.Job](ctx, r, namespace, selector); err != nil {
		return err
	}
	if !slices.ContainsFunc(in.Jobs, func(j *batchv1.Job) bool { return j.Name == name }) {
		job, err := olmcore.Get[*batchv1.Job](ctx, r, namespace, name)
		if err != nil {
			return err
		}
		if job != nil {
			in.Jobs = append(in.Jobs, job)
			slices.SortFunc(in.Jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	for _, j := range in.Jobs {
		pods, err := olmcore.List[*corev1.Pod](ctx, r, namespace, labels.SelectorFromSet(labels.Set{"job-name": j.Name}))
		if err != nil {
			return err
		}
		in.Pods = append(in.Pods, pods...)
	}
	return nil
}
