// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"context"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/olmcore"
)

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
			return UnpackInput{}, err
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
