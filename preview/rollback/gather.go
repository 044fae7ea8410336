// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

// Run gathers what is observed, and returns the way back of a Subscription to a version, "" for the one before, with
// custom resources judged by options.Judge where there is one. Errors are those of preview.GatherNamespace, of Judge
// and of Of.
func Run(ctx context.Context, r olmcore.Reader, subscription types.NamespacedName, to string, acceptLoss bool, now time.Time,
	options controllers.Options) (Advice, error) {
	gathered, err := preview.GatherNamespace(ctx, r, subscription.Namespace, now, options)
	if err != nil {
		return Advice{}, err
	}
	in := From(gathered, subscription.Name, to)
	in.AcceptLoss = acceptLoss
	a, err := Advise(ctx, in)
	if err != nil || len(a.SchemaChanges) == 0 || options.Judge == nil {
		return a, err
	}
	verdicts, err := options.Judge(ctx, r, a.SchemaChanges)
	if err != nil {
		return Advice{}, err
	}
	in.CustomResources = olmcore.Found(verdicts...)
	return Advise(ctx, in)
}
