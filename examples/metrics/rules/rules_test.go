// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// rules are those of ../alerts.yaml by name.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, problems := rulefmt.ParseFile("../alerts.yaml", false, model.LegacyValidation, language, nil)
	require.Empty(t, problems)
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			require.NotContains(t, all, r.Alert)
			all[r.Alert] = r
		}
	}
	return all
}

// suite is what ../alerts_test.yaml holds.
type suite struct {
	RuleFiles          []string `json:"rule_files"`
	EvaluationInterval string   `json:"evaluation_interval"`
	Tests              []struct {
		Name        string `json:"name"`
		Interval    string `json:"interval"`
		InputSeries []struct {
			Series string `json:"series"`
			Values string `json:"values"`
		} `json:"input_series"`
		AlertRuleTest []struct {
			EvalTime  string `json:"eval_time"`
			Alertname string `json:"alertname"`
			ExpAlerts []struct {
				Labels      map[string]string `json:"exp_labels"`
				Annotations map[string]string `json:"exp_annotations"`
			} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := model.ParseDuration(text)
	require.NoError(t, err)
	return time.Duration(d)
}

// TestAlerts runs ../alerts_test.yaml. Each rule has a case in which it fires, and one in which it does not.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile("../alerts_test.yaml")
	require.NoError(t, err)
	var s suite
	require.NoError(t, yaml.UnmarshalStrict(data, &s))
	all, fired, kept := rules(t), map[string]bool{}, map[string]bool{}
	for _, c := range s.Tests {
		t.Run(c.Name, func(t *testing.T) {
			var h history
			for _, in := range c.InputSeries {
				h.add(seriesOf(t, in.Series, in.Values, duration(t, c.Interval)))
			}
			for _, want := range c.AlertRuleTest {
				require.Contains(t, all, want.Alertname)
				got := firing(t, all[want.Alertname], h, time.Unix(0, 0), time.Unix(0, 0).Add(duration(t, want.EvalTime)), duration(t, s.EvaluationInterval))
				require.Len(t, got, len(want.ExpAlerts), "%s at %s: %v", want.Alertname, want.EvalTime, got)
				for i, a := range want.ExpAlerts {
					require.Equal(t, a.Labels, got[i].Labels)
					if a.Annotations != nil {
						require.Equal(t, a.Annotations, got[i].Annotations)
					}
				}
				fired[want.Alertname] = fired[want.Alertname] || len(got) > 0
				kept[want.Alertname] = kept[want.Alertname] || len(got) == 0
			}
		})
	}
	for name := range all {
		require.True(t, fired[name] && kept[name], "%s is not tested both ways", name)
	}
}

// TestAlertsOfWholeWorlds: what the collector exports of a world with the four problems, an hour long, makes these
// alerts fire; that of a sound world none.
func TestAlertsOfWholeWorlds(t *testing.T) {
	for file, want := range map[string][]string{
		"../testdata/sound.prom": nil,
		"../testdata/troubled.prom": {
			"OLMCatalogNodeFailed", "OLMCatalogNotReady", "OLMCatalogNotServing", "OLMCleanupStuck", "OLMInstallPlanWithoutOwner", "OLMOperatorFailed",
			"OLMOperatorNotSucceeded", "OLMResolutionFailing", "OLMSubscriptionUnhealthy", "OLMSubscriptionsOutOfStep",
		},
	} {
		t.Run(file, func(t *testing.T) {
			// The world began at noon, and what is told of it was told until an hour later.
			end := time.Date(2026, 1, 2, 13, 0, 0, 0, time.UTC)
			h := worldUntil(t, file, end)
			var fire []string
			for name, rule := range rules(t) {
				if len(firing(t, rule, h, end.Add(-time.Hour), end, time.Minute)) > 0 {
					fire = append(fire, name)
				}
			}
			slices.Sort(fire)
			require.Equal(t, want, fire)
		})
	}
}

// worldUntil reads an exposition, and makes it last an hour.
func worldUntil(t *testing.T, file string, end time.Time) (h history) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	decoder, at := expfmt.NewDecoder(f, expfmt.NewFormat(expfmt.TypeTextPlain)), model.TimeFromUnix(end.Unix())
	samples := expfmt.SampleDecoder{Dec: decoder, Opts: &expfmt.DecodeOptions{Timestamp: at}}
	for {
		var vector model.Vector
		if samples.Decode(&vector) != nil {
			require.NotEmpty(t, h)
			return h
		}
		for _, s := range vector {
			of := map[string]string{}
			for name, value := range s.Metric {
				of[string(name)] = string(value)
			}
			var points []chunks.Sample
			for m := 60; m >= 0; m-- {
				points = append(points, point{end.Add(-time.Duration(m) * time.Minute).UnixMilli(), float64(s.Value)})
			}
			h.add(labels.FromMap(of), points)
		}
	}
}

// exported are the labels of each metric, as the table of ../README.md has them.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([a-z_, ]*) \\|").FindAllStringSubmatch(string(text), -1) {
		var names []string
		if row[3] != "" {
			names = strings.Split(row[3], ", ")
		}
		all[row[1]] = names
		if row[2] == "summary" {
			all[row[1]] = append(slices.Clone(names), "quantile")
			all[row[1]+"_sum"], all[row[1]+"_count"] = names, names
		}
	}
	require.Greater(t, len(all), 20)
	return all
}

// requireExported: an expression names metrics that there are, and of each the labels that it has. It returns the
// labels of its result.
func requireExported(t *testing.T, expression string) (result []string) {
	t.Helper()
	expr, err := language.ParseExpr(expression)
	require.NoError(t, err, expression)
	all, known := exported(t), []string{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			require.Contains(t, all, selector.Name, expression)
			known = append(known, all[selector.Name]...)
			for _, m := range selector.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					require.Contains(t, all[selector.Name], m.Name, expression)
				}
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if sum, is := node.(*parser.AggregateExpr); is {
			require.Subset(t, known, sum.Grouping, expression)
			result = append(result, sum.Grouping...)
		}
		return nil
	})
	if result == nil {
		return known
	}
	return result
}

// TestAlertsNameWhatIsExported, and each label of their annotations is one of the alert's.
func TestAlertsNameWhatIsExported(t *testing.T) {
	for name, rule := range rules(t) {
		known := requireExported(t, rule.Expr)
		for _, text := range rule.Annotations {
			for _, use := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				require.Contains(t, known, use[1], name)
			}
		}
		require.Contains(t, []string{"info", "warning", "critical"}, rule.Labels["severity"], name)
		require.NotEmpty(t, rule.Annotations["summary"], name)
		require.NotEmpty(t, rule.Annotations["description"], name)
	}
}

// dashboard is what of Grafana's schema ../dashboard.json uses.
type dashboard struct {
	UID, Title, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Annotations                                struct{ List []any }
	Links                                      []any
	Templating                                 struct{ List []variable }
	Panels                                     []panel
}

type variable struct {
	Name, Label, Type, Definition, AllValue string
	Query                                   any
	Datasource                              *source
	Refresh, Hide, Sort                     int
	IncludeAll, Multi                       bool
	Current                                 map[string]any
	Options                                 []any
}

type source struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	Panels                   []any
	Datasource               *source
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []struct {
		RefID, Expr, LegendFormat, Format string
		Datasource                        *source
		Range, Instant                    bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds *struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
		Overrides []any
	}
	Options map[string]any
}

// TestTheDashboard: it is of Grafana's schema as far as it uses it, no panel lies on another, each expression parses
// and names what is exported, and what is exported of OLM's and about the four problems is shown.
func TestTheDashboard(t *testing.T) {
	data, err := os.ReadFile("../dashboard.json")
	require.NoError(t, err)
	var d dashboard
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&d))
	require.NotEmpty(t, d.UID)
	require.NotEmpty(t, d.Title)
	require.GreaterOrEqual(t, d.SchemaVersion, 39)

	variables := []string{"__all"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if query, is := strings.CutPrefix(v.Definition, "label_values("); is {
			metric, label, _ := strings.Cut(strings.TrimSuffix(query, ")"), ", ")
			require.Contains(t, exported(t)[metric], label)
		}
	}
	ids, taken, shown := map[int]bool{}, map[[2]int]string{}, string(data)
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.Contains(t, []string{"row", "stat", "table", "timeseries"}, p.Type)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, target := range p.Targets {
			known := requireExported(t, target.Expr)
			require.NotNil(t, target.Datasource, p.Title)
			for _, use := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr+target.Datasource.UID, -1) {
				require.Contains(t, variables, use[1], p.Title)
			}
			for _, use := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Contains(t, known, use[1], p.Title)
			}
		}
	}
	for metric := range exported(t) {
		if !strings.HasSuffix(metric, "_sum") && metric != "csv_succeeded" {
			require.Contains(t, shown, metric, "no panel shows it")
		}
	}
}
