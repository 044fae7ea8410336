// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/examples/metrics"
)

// export adds the library's metrics to controller-runtime's. A manager that waits for its election tells nothing of the
// cluster: each object would be counted more than once.
func export(mgr *olmruntime.Manager, m *metrics.Metrics) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := registry.Registry.Register(m); err != nil {
			return err
		}
		defer registry.Registry.Unregister(m)
		m.Read(mgr)
		<-ctx.Done()
		return nil
	}))
}

// warnings hands what an API server warns of to each.
type warnings []rest.WarningHandlerWithContext

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	for _, each := range w {
		each.HandleWarningHeaderWithContext(ctx, code, agent, text)
	}
}
