// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Bundle for one lookup. namespace is the namespace of the Subscriptions. The caller sets
// Now. If the lookup has no path or CatalogSource, Gather reads nothing, and Bundle reports the problem. Every failed
// read is an error, even if the Reader does not read the kind (olmcore.ErrNotRead).
func Gather(
	ctx context.Context,
	r olmcore.Reader,
	namespace string,
	lookup v1alpha1.BundleLookup,
	config installplan.Config,
) (Input, error) {
	in := Input{Lookup: lookup, Config: config}
	ref := lookup.CatalogSourceRef
	if ref == nil || ref.Namespace == "" || ref.Name == "" || lookup.Path == "" {
		return in, nil
	}
	var errs [8]error
	name := bundle.Name(lookup.Path)
	groups, err := olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil)
	in.OperatorGroups, errs[0] = olmcore.Found(groups...), err
	in.CatalogSource, errs[1] = olmcore.Get[*v1alpha1.CatalogSource](ctx, r, ref.Namespace, ref.Name)
	in.ConfigMap, errs[2] = olmcore.Get[*corev1.ConfigMap](ctx, r, ref.Namespace, name)
	in.Role, errs[3] = olmcore.Get[*rbacv1.Role](ctx, r, ref.Namespace, name)
	in.RoleBinding, errs[4] = olmcore.Get[*rbacv1.RoleBinding](ctx, r, ref.Namespace, name)
	in.ServiceAccount, errs[5] = olmcore.Get[*corev1.ServiceAccount](ctx, r, ref.Namespace, name)
	in.Jobs, errs[6] = jobs(ctx, r, ref.Namespace, name)
	in.Pods, errs[7] = pods(ctx, r, in.Jobs.Items)
	if err := cmp.Or(errs[:]...); err != nil {
		return Input{}, inputs.Needed(err, "whether a bundle is unpacked")
	}
	return in, nil
}

// jobs reads the Jobs of a bundle: those with its label, and the Job with its name. Old versions of OLM did not set the
// label.
func jobs(ctx context.Context, r olmcore.Reader, namespace, name string) (olmcore.Observed[*batchv1.Job], error) {
	list, err := olmcore.List[*batchv1.Job](ctx, r, namespace, labels.SelectorFromSet(labels.Set{labelUnpackRef: name}))
	if err != nil || isTaken(list, name) {
		return olmcore.Found(list...), err
	}
	job, err := olmcore.Get[*batchv1.Job](ctx, r, namespace, name)
	if job != nil {
		list = append(list, job)
	}
	slices.SortFunc(list, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return olmcore.Found(list...), err
}

// pods reads the Pods of Jobs.
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
