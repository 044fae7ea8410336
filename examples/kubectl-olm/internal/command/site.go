// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore"
)

// site is where plans are previewed and approved.
type site struct {
	// world has what a name is looked for in; of files it is all.
	world *world.World
	// reader reads what a preview looks at. Of a live cluster that is read anew each time.
	reader olmcore.Reader
	// cluster writes; nil for files.
	cluster *olmdynamic.Cluster
	// options are those of the controllers that would carry it out, separate what the user said about one of them.
	options  controllers.Options
	separate separatePlans
}

// writtenKinds are those in which the commands that write look for names.
var writtenKinds = []schema.GroupVersionKind{subscriptions, installPlans, catalogs}

// newSite opens what the flags say: of a live cluster these kinds, of files all.
func (r *root) newSite(ctx context.Context, kinds []schema.GroupVersionKind) (*site, error) {
	isLive := len(r.files) == 0
	if !isLive {
		kinds = readBy("csv", "installplan", "subscription", "resolution")
	}
	r.tellsUnread = !isLive // a preview says what it lacks
	w, err := r.open(ctx, kinds)
	if err != nil {
		return nil, err
	}
	if err := readContent(ctx, r, w, false); err != nil {
		return nil, err
	}
	s := &site{world: w, reader: w, separate: r.separate}
	s.options = controllers.Options{
		KubernetesVersion: dryrun.NewestKubernetes, Live: true,
		GlobalNamespace: cmp.Or(r.catalogs.GlobalNamespace, controllers.DefaultGlobalNamespace),
	}
	r.catalogs.Serve(&s.options)
	if !isLive {
		return s, nil
	}
	config, err := r.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if s.cluster, err = world.Connect(config); err != nil {
		return nil, err
	}
	s.cluster.FieldManager = "kubectl-olm"
	s.reader, s.options.KubernetesVersion, s.options.Judge = s.cluster, s.cluster.Version, crvalidation.Live(s.cluster)
	return s, nil
}

// optionsIn returns the options of the controllers in a namespace: those that the user gave and, of what he did not,
// what its objects show. A preview reports by itself if no InstallPlan can be read.
func (s *site) optionsIn(ctx context.Context, namespace string) controllers.Options {
	options := s.options
	plans, err := olmcore.List[*v1alpha1.InstallPlan](ctx, s.reader, namespace, nil)
	if err != nil {
		plans = nil
	}
	options.InstallPlan.SeparatePlans = s.separate.isOn(plans)
	return options
}
