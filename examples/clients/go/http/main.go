// Calls Sluicegate over HTTP, with Go's standard library: `go run main.go`
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

type answer struct {
	Allowed      bool   `json:"allowed"`
	Remaining    uint64 `json:"remaining"`
	RetryAfterMs *int64 `json:"retry_after_ms"`
}

var client = http.Client{Timeout: 5 * time.Second}

// take takes a token from a bucket of three that refills at one per second. It waits after a denial.
func take(url, key string) (uint64, error) {
	body, err := json.Marshal(map[string]any{"key": key, "capacity": 3, "refill_rate": 1})
	if err != nil {
		return 0, err
	}
	for {
		response, err := client.Post(url+"/v1/take", "application/json", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		var got answer
		err = json.NewDecoder(response.Body).Decode(&got)
		response.Body.Close()
		switch {
		case err != nil:
			return 0, err
		case response.StatusCode != http.StatusOK:
			return 0, fmt.Errorf("sluicegate answered %s", response.Status)
		case got.Allowed:
			return got.Remaining, nil
		case got.RetryAfterMs == nil:
			return 0, fmt.Errorf("this will never be allowed")
		}
		fmt.Printf("denied, waiting %d ms\n", *got.RetryAfterMs)
		time.Sleep(time.Duration(*got.RetryAfterMs) * time.Millisecond)
	}
}

func main() {
	url := os.Getenv("SLUICEGATE_URL")
	if url == "" {
		url = "http://127.0.0.1:8080"
	}
	for i := 0; i < 4; i++ {
		left, err := take(url, "client:go")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("allowed, %d left\n", left)
	}
}
