// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/internal/simulation"
)

// Gather reads what Of looks at for a plan: the kinds that its controllers read, of the plan's namespace alone where
// that is enough, and the objects that the steps of the plan name. What may not be read, or was not, is in NotRead; any
// other read that fails is an error. A plan that does not exist is an error for which apierrors.IsNotFound holds.
func Gather(ctx context.Context, r olmcore.Reader, plan types.NamespacedName, now time.Time, options controllers.Options) (Input, error) {
	own, err := installplan.Gather(ctx, r, plan, options.InstallPlan)
	if err != nil {
		return Input{}, err
	}
	g := gatherer{ctx: ctx, r: r, seen: map[olmcore.Key]bool{}}
	g.add(own.InstallPlan)
	g.add(own.Objects.Items...)
	for _, cm := range own.ConfigMaps.Items {
		g.add(cm)
	}
	for _, s := range own.PullSecrets.Items {
		g.add(s)
	}
	return g.all(Input{Now: now, Plan: plan, Options: options})
}

// GatherNamespace is Gather for what Hops looks at: no plan is needed.
func GatherNamespace(ctx context.Context, r olmcore.Reader, namespace string, now time.Time, options controllers.Options) (Input, error) {
	g := gatherer{ctx: ctx, r: r, seen: map[olmcore.Key]bool{}}
	return g.all(Input{Now: now, Plan: types.NamespacedName{Namespace: namespace}, Options: options})
}

// all adds what the controllers read.
func (g *gatherer) all(in Input) (Input, error) {
	options := in.Options
	options.Namespaces = []string{in.Plan.Namespace}
	watched := options.Watched(simulation.Controllers...)
	byName := func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(watched), byName) {
		namespaces := watched[kind]
		if namespaces == nil {
			namespaces = []string{""}
		}
		if err := g.list(kind, namespaces); err != nil {
			return Input{}, err
		}
	}
	in.Objects, in.NotRead = g.objects, g.notRead
	return in, nil
}

type gatherer struct {
	ctx     context.Context
	r       olmcore.Reader
	objects []olmcore.Object
	seen    map[olmcore.Key]bool
	notRead []string
}

func (g *gatherer) add(objects ...olmcore.Object) {
	for _, o := range objects {
		if key := olmcore.KeyOf(o); !g.seen[key] {
			g.seen[key] = true
			g.objects = append(g.objects, o)
		}
	}
}

func (g *gatherer) list(kind schema.GroupVersionKind, namespaces []string) error {
	for _, namespace := range namespaces {
		found, err := olmcore.ListKind(g.ctx, g.r, kind, namespace, nil)
		switch class := olmcore.Classify(err); {
		case class == olmcore.NoMatch:
			return nil
		case class == olmcore.Forbidden, errors.Is(err, olmcore.ErrNotRead):
			if !slices.Contains(g.notRead, kind.Kind) {
				g.notRead = append(g.notRead, kind.Kind)
			}
			continue
		case err != nil:
			return err
		}
		g.add(found...)
	}
	return nil
}

// Run is Gather and Of, with custom resources judged by options.Judge where there is one.
func Run(ctx context.Context, r olmcore.Reader, plan types.NamespacedName, now time.Time, options controllers.Options) (Preview, error) {
	in, err := Gather(ctx, r, plan, now, options)
	if err != nil {
		return Preview{}, err
	}
	p, err := Simulate(ctx, in)
	if err != nil || len(p.SchemaChanges) == 0 || options.Judge == nil {
		return p, err
	}
	verdicts, err := options.Judge(ctx, r, p.SchemaChanges)
	if err != nil {
		return Preview{}, err
	}
	in.CustomResources = olmcore.Found(verdicts...)
	return Simulate(ctx, in)
}
