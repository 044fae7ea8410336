// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Plan looks at in a namespace; the caller adds Now. A read that failed, and objects that were not
// read, are its error.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, resolution olmcore.Resolution, config installplan.Config) (Input, error) {
	in := Input{
		Namespace: namespace, Resolution: resolution, Config: config,
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](), ConfigMaps: olmcore.Found[*corev1.ConfigMap](),
	}
	var err error
	if in.Subscriptions, err = all[*v1alpha1.Subscription](ctx, r, namespace, "who owns a new InstallPlan"); err != nil {
		return Input{}, err
	}
	if in.InstallPlans, err = all[*v1alpha1.InstallPlan](ctx, r, namespace, "whether the InstallPlan exists"); err != nil {
		return Input{}, err
	}
	if in.OperatorGroups, err = all[*operatorsv1.OperatorGroup](ctx, r, namespace, "as which account a new InstallPlan runs"); err != nil {
		return Input{}, err
	}
	for _, o := range resolution.Operators {
		if err := add(ctx, r, &in.ClusterServiceVersions, namespace, o.Name, "what is installed"); err != nil {
			return Input{}, err
		}
		if o.Bundle.Image == "" || len(o.Bundle.Objects) > 0 {
			continue
		}
		if err := add(ctx, r, &in.ConfigMaps, o.Catalog.Namespace, bundle.Name(o.Bundle.Image), "whether a bundle is unpacked"); err != nil {
			return Input{}, err
		}
	}
	return in, nil
}

// all lists the objects of a namespace; unknown is what cannot be told without them.
func all[T olmcore.Object](ctx context.Context, r olmcore.Reader, namespace, unknown string) (olmcore.Observed[T], error) {
	list, err := olmcore.List[T](ctx, r, namespace, nil)
	return olmcore.Found(list...), olmcore.Needed(err, unknown)
}

// add reads one object into a list, each once.
func add[T interface {
	comparable
	olmcore.Object
}](ctx context.Context, r olmcore.Reader, to *olmcore.Observed[T], namespace, name, unknown string) error {
	var absent T
	o, err := olmcore.Get[T](ctx, r, namespace, name)
	if err != nil {
		return olmcore.Needed(err, unknown)
	}
	if o != absent && !slices.ContainsFunc(to.Items, func(have T) bool { return olmcore.KeyOf(have) == olmcore.KeyOf(o) }) {
		to.Items = append(to.Items, o)
	}
	return nil
}
