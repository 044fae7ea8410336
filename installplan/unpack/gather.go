// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Bundle looks at for one lookup of a namespace of Subscriptions; the caller adds Now. A lookup
// without path or CatalogSource reads nothing: Bundle says what is wrong with it. A read that failed, and objects that
// were not read, are its error.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, lookup v1alpha1.BundleLookup, config installplan.Config) (Input, error) {
	in := Input{Lookup: lookup, Config: config}
	ref := lookup.CatalogSourceRef
	if ref == nil || ref.Namespace == "" || ref.Name == "" || lookup.Path == "" {
		return in, nil
	}
	name := bundle.Name(lookup.Path)
	for _, read := range [...]func() error{
		func() error {
			groups, err := olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil)
			in.OperatorGroups = olmcore.Found(groups...)
			return err
		},
		get(ctx, r, &in.CatalogSource, ref.Namespace, ref.Name),
		get(ctx, r, &in.ConfigMap, ref.Namespace, name),
		get(ctx, r, &in.Role, ref.Namespace, name),
		get(ctx, r, &in.RoleBinding, ref.Namespace, name),
		get(ctx, r, &in.ServiceAccount, ref.Namespace, name),
		func() (err error) {
			in.Jobs, err = jobs(ctx, r, ref.Namespace, name)
			return err
		},
		func() (err error) {
			in.Pods, err = pods(ctx, r, in.Jobs.Items)
			return err
		},
	} {
		if err := read(); err != nil {
			return Input{}, olmcore.Needed(err, "whether a bundle is unpacked")
		}
	}
	return in, nil
}

// get returns the read of one object.
func get[T olmcore.Object](ctx context.Context, r olmcore.Reader, to *T, namespace, name string) func() error {
	return func() (err error) {
		*to, err = olmcore.Get[T](ctx, r, namespace, name)
		return err
	}
}

// jobs reads the Jobs of a bundle, with its label or, as OLM made them once, without.
func jobs(ctx context.Context, r olmcore.Reader, namespace, name string) (olmcore.Observed[*batchv1.Job], error) {
	list, err := olmcore.List[*batchv1.Job](ctx, r, namespace, labels.SelectorFromSet(labels.Set{labelUnpackRef: name}))
	if err != nil || slices.ContainsFunc(list, func(j *batchv1.Job) bool { return j.Name == name }) {
		return olmcore.Found(list...), err
	}
	job, err := olmcore.Get[*batchv1.Job](ctx, r, namespace, name)
	if job != nil {
		list = append(list, job)
	}
	slices.SortFunc(list, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return olmcore.Found(list...), err
}

func pods(ctx context.Context, r olmcore.Reader, jobs []*batchv1.Job) (olmcore.Observed[*corev1.Pod], error) {
	found := olmcore.Found[*corev1.Pod]()
	for _, j := range jobs {
		list, err := olmcore.List[*corev1.Pod](ctx, r, j.Namespace, labels.SelectorFromSet(labels.Set{"job-name": j.Name}))
		if err != nil {
			return found, err
		}
		found.Items = append(found.Items, list...)
	}
	return found, nil
}
