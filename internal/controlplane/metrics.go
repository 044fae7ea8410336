// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Counted is what the API server counts requests by.
type Counted struct{ Verb, Group, Resource, Subresource string }

// String returns "VERB group/resource/subresource".
func (c Counted) String() string {
	return fmt.Sprintf("%s %s/%s/%s", c.Verb, c.Group, c.Resource, c.Subresource)
}

// Writes reports whether such requests ask for a change.
func (c Counted) Writes() bool {
	switch c.Verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}

// RequestCounts returns the API server's metric apiserver_request_total, without watches, which are counted when they
// end.
func (c *ControlPlane) RequestCounts(ctx context.Context) (map[Counted]float64, error) {
	config := rest.CopyConfig(c.Config)
	config.APIPath, config.NegotiatedSerializer = "/", scheme.Codecs
	config.GroupVersion = &scheme.Scheme.PrioritizedVersionsAllGroups()[0]
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	text, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	counts := map[Counted]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		label := labelsOf(m)
		if label["verb"] == "WATCH" {
			continue
		}
		counts[Counted{label["verb"], label["group"], label["resource"], label["subresource"]}] += m.GetCounter().GetValue()
	}
	return counts, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
